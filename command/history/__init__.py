"""`altershield history`: the versions of a workload that were released, and their pod templates."""

from command.history.command import history

__all__ = ["history"]
