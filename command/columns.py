"""Tables in the layout of kubectl."""

from collections.abc import Iterable, Sequence

_GAP = "   "


class Columns:
    """Aligns the columns. A wide line widens the columns for later lines, as in `kubectl get -w`."""

    def __init__(self, width: int) -> None:
        self._widths = [0] * width

    def lines(self, cells: Iterable[Sequence[str]]) -> list[str]:
        rows = list(cells)
        for each in rows:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, each, strict=True)]
        return [
            _GAP.join(cell.ljust(width) for cell, width in zip(each, self._widths, strict=True)).rstrip()
            for each in rows
        ]
