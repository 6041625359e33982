"""PodDeletionFlowControls: confirms the deletions that gatekeepers counted, and reports the state of the breaker."""
