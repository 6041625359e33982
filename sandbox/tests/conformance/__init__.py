"""Tests of the behaviour of any Kubernetes API: they run on the sandbox, on kube-apiserver or on a cluster."""
