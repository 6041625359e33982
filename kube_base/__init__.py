"""What AlterShield and the sandbox both need to speak with Kubernetes. It imports neither of them."""
