"""The simulated disruption controller, which keeps the status of PodDisruptionBudgets."""
