"""Measures the programs of a fleet phase after phase."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from bench.harness.answer import Answer
from bench.harness.proc import Programs
from bench.harness.waiting import unless_failed


@dataclass(frozen=True)
class Phase:
    """CPU in seconds and memory in MiB, by program. Rates are per second, times in milliseconds or seconds."""

    name: str
    seconds: float
    cpu: dict[str, float]
    memory: dict[str, int]
    requests: dict[str, float]
    """Requests per second, by verb and resource; of a created fleet: successful writes of the reconciler."""
    admission: tuple[int, float, float] = (0, 0.0, 0.0)
    """Number, p50 and p99 in milliseconds."""
    verdict: tuple[int, float, float] = (0, 0.0, 0.0)
    """Number of pods, p50 and p99 in seconds."""
    more: dict[str, float] = field(default_factory=dict)


class Recorder:
    """Measures one phase after the other."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.programs = Programs()

    @contextlib.asynccontextmanager
    async def phase(self, name: str, finish: Callable[[float], Mapping[str, Any]]) -> AsyncIterator[None]:
        """Measure the block. `finish` gets the seconds, and returns the other fields of the phase."""
        before, began = self.programs.cpu(), time.monotonic()
        yield
        seconds = time.monotonic() - began
        cpu = {key: round(used - before.get(key, 0.0), 2) for key, used in self.programs.cpu().items()}
        self.phases.append(Phase(name, round(seconds, 1), cpu, self.programs.memory(), **finish(seconds)))
        print(self.phases[-1], flush=True)


async def course(
    phase: Callable[[str], AbstractAsyncContextManager[None]],
    seconds: float,
    disturb: Callable[[], list[asyncio.Task[None]]],
    wave: Callable[[], Awaitable[None]],
) -> None:
    """Rest for a tenth of the seconds, disturb for three tenths, add a wave of releases, and go on until the end."""
    began = time.monotonic()
    async with phase("rest"):
        await asyncio.sleep(seconds * 0.1)
    disturbing = disturb()
    async with phase("churn"):
        await unless_failed(asyncio.sleep(seconds * 0.3), disturbing)
    async with phase("wave"):
        await unless_failed(wave(), disturbing)
    async with phase("after the wave"):
        await unless_failed(asyncio.sleep(max(1.0, began + seconds - time.monotonic())), disturbing)
    for task in disturbing:
        task.cancel()


def answer(title: str, phases: Sequence[Phase]) -> Answer:
    """The phases as the answer to a question about a fleet."""
    table = Table("", "duration", "CPU of a core", "memory, largest", "requests/s", "admission", "verdict", title=title)
    for each in phases:
        ours = [(key, each.cpu.get(key, 0.0) / each.seconds) for key in ("gatekeeper", "reconciler")]
        table.add_row(
            each.name,
            f"{each.seconds:.0f} s",
            "\n".join(f"{key} {share:.1%}" for key, share in ours),
            "\n".join(f"{key} {each.memory.get(key, 0)} MiB" for key, _ in ours),
            f"{sum(each.requests.values()):.1f}",
            "p50 {1:.1f} ms\np99 {2:.1f} ms".format(*each.admission) if each.admission[0] else "",
            "p50 {1:.2f} s\np99 {2:.2f} s".format(*each.verdict) if each.verdict[0] else "",
        )
    rates = [{key: rate for key, rate in list(each.requests.items())[:14] if rate >= 0.01} for each in phases]
    notes = [f"{each.name} {shown} {each.more}" for each, shown in zip(phases, rates, strict=True)]
    return Answer({"title": title, "phases": [asdict(each) for each in phases]}, [table], notes)
