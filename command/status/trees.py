"""Workloads that the user named, in more than a table: their steps below it, once or after every change, or all of them
as trees that are drawn again on a terminal."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence

from rich.live import Live
from rich.text import Text

from altershield.views.releases import family
from altershield.views.releases.batches import batches_of
from altershield.views.releases.family import Batches, Mark
from altershield.views.releases.model import Release
from altershield.views.releases.steps import has_steps
from altershield.views.releases.tree import outlook, tree
from command.app import called_as
from command.status.printers import Printer
from kube_base.access.client import Client

_PAUSE = 1.0  # seconds between two drawings: the time that is left changes
_STYLES = {Mark.PLAIN: "", Mark.GOOD: "green", Mark.BAD: "bold red"}


class Trees:
    """The releases that the user named. `wanted`: whether they are shown at all."""

    def __init__(self, client: Client, printer: Printer, *, wanted: bool) -> None:
        self._client = client
        self._printer = printer
        self._wanted = wanted
        self._live: Live | None = None
        self._drawn: tuple[Sequence[Release], Batches] | None = None
        self._printed: dict[str, tuple[str, ...]] = {}

    async def whole(self, found: Sequence[Release]) -> None:
        """Print the steps of all these releases."""
        self._printer.more(_steps(found, await self._batches_in_steps(found)))

    async def changes(self, found: Sequence[Release]) -> None:
        """Print the steps of the releases of which they changed since the last call."""
        for each in found:
            batches = await self._batches_in_steps([each])
            constant = tuple(_steps([each], batches, now=0.0))  # without the time that is left
            key = each.stored.metadata.name if each.stored is not None else ""
            if constant and self._printed.get(key) != constant:
                self._printed[key] = constant
                self._printer.more(_steps([each], batches))

    async def draw(self, found: Sequence[Release]) -> bool:
        """Draw these releases as trees, in place of the ones before. False: this is no terminal, or nobody named
        them."""
        if self._live is None:
            return False
        self._drawn = found, await self._read(found)
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
        self._live.start()
        self._live.update(Text("\n").join(_trees(*self._drawn)), refresh=True)

    async def _batches_in_steps(self, found: Sequence[Release]) -> Batches:
        return await self._read([each for each in found if has_steps(each)]) if self._wanted else {}

    async def _read(self, found: Sequence[Release]) -> Batches:
        stored = [each.stored for each in found if each.stored is not None]
        return {each.metadata.name: await batches_of(self._client, each) for each in stored}


def _trees(found: Sequence[Release], batches: Batches) -> Iterator[Text]:
    """The lines of one tree for each workload."""
    now = time.time()
    for key in dict.fromkeys(each.key for each in found):
        own = [each for each in found if each.key == key]
        for line in family.lines(own, batches, now):
            yield Text.assemble(line.branch, (line.text, _STYLES[line.mark]), no_wrap=True, overflow="ellipsis")
        for each in own:
            own_batches = batches.get(each.stored.metadata.name, ()) if each.stored is not None else ()
            yield from map(Text, outlook(each, own_batches, now, called_as(sys.argv[0])))


def _steps(found: Sequence[Release], batches: Batches, now: float | None = None) -> list[str]:
    """The steps of the releases whose ChangePods were read."""
    lines: list[str] = []
    for each in found:
        if each.stored is not None and each.stored.metadata.name in batches:
            at = time.time() if now is None else now
            lines += tree(each, batches[each.stored.metadata.name], at, called_as(sys.argv[0]))
    return lines
