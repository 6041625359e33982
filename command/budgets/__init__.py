"""`altershield budgets`: the numbers and records of PodUnavailableBudgets, and what keeps their pods away."""

from command.budgets.command import EXIT_EXHAUSTED, budgets

__all__ = ["EXIT_EXHAUSTED", "budgets"]
