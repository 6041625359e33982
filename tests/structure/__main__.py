"""Prints the measures of the structure. It fails if one of them exceeds its bound."""

import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.structure import bounds, measures
from tests.structure.trace import Walk
from tests.structure.walks import WALKS

_SHOWN = 10


def main() -> int:
    logging.disable()
    walks = asyncio.run(_walks())
    for heading, walk in walks.items():
        files, turns = walk.files(), walk.turns()
        _print(f"{heading}: {len(files)} files, {len(turns)} turns back", files)
        _print("", (f"from {caller} back to {file}" for file, caller in turns))
    rooms = (f"{room.files:4} files {room.lines:6} lines  {room.folder}" for room in measures.rooms())
    _print("Rooms", rooms)
    for title, found in (
        ("Longest functions", measures.lengths()),
        ("Most complex functions", measures.complexities()),
        ("Longest files", measures.files()),
    ):
        _print(title, (f"{each.number:4}  {each.about}" for each in found[:_SHOWN]))
    exceeded = list(bounds.exceeded(walks))
    _print("Over a bound" if exceeded else "Nothing is over a bound", exceeded)
    return 1 if exceeded else 0


async def _walks() -> dict[str, Walk]:
    found = {}
    for heading, walk in WALKS.items():
        with tempfile.TemporaryDirectory() as directory:
            found[heading] = await walk(Path(directory))
    return found


def _print(title: str, lines: Iterable[str]) -> None:
    print(title, *(f"  {line}" for line in lines), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
