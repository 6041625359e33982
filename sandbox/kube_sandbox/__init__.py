"""A Kubernetes API on loopback (`apiserver`), and simulated nodes and controllers (`cluster`), which work on any
Kubernetes API. For tests of admission webhooks and controllers."""
