"""What any Kubernetes API answers: run on the sandbox, on kube-apiserver, or on a cluster."""
