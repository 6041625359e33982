"""The Kubernetes API, in memory, on loopback. Where it differs from the real kube-apiserver, it is wrong."""
