"""One controller decides everything about a workload's releases: recording, verification, suspension, rollback, and
what slipped past the gate."""
