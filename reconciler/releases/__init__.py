"""One controller decides everything about a workload's releases: recording, verification, suspension, rollback, and
the releases that no gatekeeper reviewed."""
