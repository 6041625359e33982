"""Tables in the layout of kubectl."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console

_GAP = "   "
_CUT = "…"
_LEAST = 20  # cells of the last column that are always shown


def room(*, wide: bool, console: Console | None = None) -> int | None:
    """The width to which tables are cut: that of the terminal. None, no bound: stdout is none, or all is wanted.
    `console`: where the table goes, stdout by default."""
    console = console or Console()
    return console.width if console.is_terminal and not wide else None


class Columns:
    """Aligns the columns. A wide line widens the columns for later lines, as in `kubectl get -w`."""

    def __init__(self, width: int) -> None:
        self._widths = [0] * width

    def lines(self, cells: Iterable[Sequence[str]], room: int | None = None) -> list[str]:
        """The lines. `room`: the width to which the last column is cut, in cells of the terminal."""
        rows = list(cells)
        for each in rows:
            self._widths = [max(width, cell_len(cell)) for width, cell in zip(self._widths, each, strict=True)]
        last = self._widths[-1] if room is None else max(_LEAST, room - sum(self._widths[:-1]) - self._gaps)
        return [
            _GAP.join(
                [
                    *(set_cell_size(cell, width) for cell, width in zip(each, self._widths[:-1], strict=False)),
                    each[-1] if cell_len(each[-1]) <= last else set_cell_size(each[-1], last - 1).rstrip() + _CUT,
                ]
            ).rstrip()
            for each in rows
        ]

    @property
    def _gaps(self) -> int:
        return len(_GAP) * (len(self._widths) - 1)
