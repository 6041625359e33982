"""The protection of objects from deletion: `altershield protect`, `unprotect` and `protected`."""

from altershield.commands.protection.changing import protect, unprotect
from altershield.commands.protection.listing import EXIT_STAYS, protected

__all__ = ["EXIT_STAYS", "protect", "protected", "unprotect"]
