"""The steps of releases below the table: once, after every change, or drawn again on a terminal."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from rich.live import Live

from altershield.api.change_pod import ChangePod
from altershield.views.releases.batches import batches_of
from altershield.views.releases.model import Release
from altershield.views.releases.steps import has_steps
from altershield.views.releases.tree import tree
from command.app import called_as
from command.status.printers import Printer
from kube_base.access.client import Client

_PAUSE = 1.0  # seconds between two drawings: the time that is left changes

Batches = Mapping[str, Sequence[ChangePod]]
"""The ChangePods of each release, by the name of its ChangeWorkload."""


class Trees:
    """The steps of the releases that the user named. `wanted`: whether they are shown at all."""

    def __init__(self, client: Client, printer: Printer, *, wanted: bool) -> None:
        self._client = client
        self._printer = printer
        self._wanted = wanted
        self._live: Live | None = None
        self._drawn: tuple[Sequence[Release], Batches] | None = None
        self._printed: dict[str, tuple[str, ...]] = {}

    async def whole(self, found: Sequence[Release]) -> None:
        """Print the steps of all these releases."""
        self._printer.more(_lines(found, await self._batches(found)))

    async def changes(self, found: Sequence[Release]) -> None:
        """Print the steps of the releases of which they changed since the last call."""
        for each in found:
            batches = await self._batches([each])
            constant = tuple(_lines([each], batches, now=0.0))  # without the time that is left
            key = each.stored.metadata.name if each.stored is not None else ""
            if constant and self._printed.get(key) != constant:
                self._printed[key] = constant
                self._printer.more(_lines([each], batches))

    async def draw(self, found: Sequence[Release]) -> bool:
        """Draw the table and the steps of these releases in place of the ones before. False: this is no terminal, or no
        release is made in steps."""
        if self._live is None or (self._drawn is None and not any(map(has_steps, found))):
            return False
        self._drawn = found, await self._batches(found)
        self._draw()
        return True

    @contextlib.asynccontextmanager
    async def drawn_again(self) -> AsyncGenerator[None, None]:
        """On a terminal, draw again every second what was drawn."""
        if not self._wanted or not self._printer.console.is_terminal:
            yield
            return
        self._live = Live(console=self._printer.console, auto_refresh=False)
        drawing = asyncio.create_task(self._draw_again())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
            self._live.stop()
            self._live = None

    async def _draw_again(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            self._draw()

    def _draw(self) -> None:
        if self._live is None or self._drawn is None:
            return
        found, batches = self._drawn
        self._live.start()
        self._live.update(self._printer.screen(found, _lines(found, batches)), refresh=True)

    async def _batches(self, found: Sequence[Release]) -> Batches:
        wanted = [each.stored for each in found if self._wanted and each.stored is not None and has_steps(each)]
        return {each.metadata.name: await batches_of(self._client, each) for each in wanted}


def _lines(found: Sequence[Release], batches: Batches, now: float | None = None) -> list[str]:
    """The steps of the releases whose ChangePods were read."""
    lines: list[str] = []
    for each in found:
        if each.stored is not None and each.stored.metadata.name in batches:
            at = time.time() if now is None else now
            lines += tree(each, batches[each.stored.metadata.name], at, called_as(sys.argv[0]))
    return lines
