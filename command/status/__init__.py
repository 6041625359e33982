"""`altershield status` and `wait`: the releases, their outcome, and the reason for it."""

from command.status.command import status
from command.status.exit_codes import EXIT_ROLLED_BACK, EXIT_SUSPENDED, EXIT_UNDER_WAY
from command.status.wait import wait

__all__ = ["EXIT_ROLLED_BACK", "EXIT_SUSPENDED", "EXIT_UNDER_WAY", "status", "wait"]
