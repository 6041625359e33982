"""A Kubernetes API server that keeps its objects in memory and listens on loopback.

Every difference from the real kube-apiserver is a bug.
"""
