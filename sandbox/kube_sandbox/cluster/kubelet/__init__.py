"""The simulated kubelets."""
