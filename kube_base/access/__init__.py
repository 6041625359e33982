"""Access to the Kubernetes API: client, credentials, informers, work queue, leader election and Events."""
