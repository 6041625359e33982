"""`altershield gates`, `calendar`, `freeze` and `unfreeze`: when releases may begin."""

from command.gates.calendar import calendar
from command.gates.command import gates
from command.gates.freezing import freeze, unfreeze

__all__ = ["calendar", "freeze", "gates", "unfreeze"]
