"""`altershield gates`, `calendar`, `freeze`, `unfreeze` and `override`: when releases may begin."""

from command.gates.calendar import calendar
from command.gates.command import gates
from command.gates.freezing import freeze, unfreeze
from command.gates.overriding import override

__all__ = ["calendar", "freeze", "gates", "override", "unfreeze"]
