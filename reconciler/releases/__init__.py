"""The controller of a workload's releases: it creates their ChangeWorkloads, verifies pods, suspends, rolls back, and
finds releases that no gatekeeper reviewed."""
