"""`altershield check`: tests AlterShield in a cluster with a workload of its own. `helm test` runs this command."""

from command.check.command import check

__all__ = ["check"]
