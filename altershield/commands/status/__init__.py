"""`altershield status` and `wait`: the releases, their outcome, and the reason for it."""

from altershield.commands.status.command import status
from altershield.commands.status.exit_codes import EXIT_ROLLED_BACK, EXIT_SUSPENDED, EXIT_UNDER_WAY
from altershield.commands.status.wait import wait

__all__ = ["EXIT_ROLLED_BACK", "EXIT_SUSPENDED", "EXIT_UNDER_WAY", "status", "wait"]
