"""The protection of objects from deletion: `altershield protect`, `unprotect` and `protected`."""

from command.protection.changing import protect, unprotect
from command.protection.listing import EXIT_STAYS, protected

__all__ = ["EXIT_STAYS", "protect", "protected", "unprotect"]
