"""Simulated nodes, kubelets, scheduler and controllers. They work on any Kubernetes API."""
