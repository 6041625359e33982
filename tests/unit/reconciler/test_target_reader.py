"""What is read from the API server before a rollback."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from reconciler.releases.target_reader import TargetReader
from tests.unit.reconciler.builders import release


class World:
    """The client and the caches, as far as the reader uses them. Each ChangePod takes a millisecond."""

    def __init__(self, batches: int) -> None:
        self.items = list(range(batches))
        self.seen: list[int] = []
        self.batches = self

    async def list(self, *_: Any, **__: Any) -> Any:
        return self

    def read(self, item: int) -> int:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        return item

    def observe(self, item: int) -> None:
        self.seen.append(item)


async def test_other_tasks_run_while_the_verdicts_of_a_large_release_are_read() -> None:
    world = World(batches=200)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    reader = TargetReader(cast(Any, world), cast(Any, world), cast(Any, None))
    await reader._read_verdicts(cast(Any, SimpleNamespace(release=release())))
    running.cancel()
    assert world.seen == world.items
    assert turns >= 5
