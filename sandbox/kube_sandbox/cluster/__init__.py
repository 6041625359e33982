"""Simulated nodes, kubelets and controllers. They talk to any Kubernetes API."""
