"""The budgets that annotations of workloads and Namespaces ask for: made, followed and deleted."""
