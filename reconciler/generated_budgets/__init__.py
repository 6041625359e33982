"""Creates, updates and deletes the budgets that annotations of workloads and Namespaces ask for."""
