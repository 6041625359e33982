"""Access to the Kubernetes API: requests, caches, queues, leadership and events."""
