"""Tables as `kubectl get` shows them."""
