"""Handlers that count deletions and evictions of pods in PodDeletionFlowControls, and refuse those beyond a limit."""
