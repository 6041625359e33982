"""Measures phase after phase, and reports them."""

import contextlib
import datetime
import json
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.fleet.programs import Programs

_RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Phase:
    """CPU in seconds and memory in MiB, by program. Rates are per second, times in milliseconds or seconds."""

    name: str
    seconds: float
    cpu: dict[str, float]
    memory: dict[str, int]
    requests: dict[str, float]
    """Requests per second, by verb and resource; `cluster`: successful writes of the reconciler."""
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


def quantiles(values: Iterable[float], factor: float = 1.0) -> tuple[int, float, float]:
    """The number of values, their median and their 99th percentile."""
    found = sorted(values)
    if not found:
        return 0, 0.0, 0.0
    at = (found[int((len(found) - 1) * share)] * factor for share in (0.5, 0.99))
    return len(found), *(round(each, 2) for each in at)  # type: ignore[return-value]


def report(name: str, title: str, sizes: Mapping[str, float], phases: list[Phase]) -> None:
    """Print the phases, and write them to `bench/results/NAME.json`."""
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
    Console(width=140).print(table)
    for each in phases:
        print(each.name, {key: rate for key, rate in list(each.requests.items())[:14] if rate >= 0.01}, each.more)
    machine = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}
    taken = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **machine, **sizes}
    _RESULTS.mkdir(exist_ok=True)
    content = json.dumps(taken | {"phases": [asdict(each) for each in phases]}, indent=2)
    (_RESULTS / f"{name}.json").write_text(content + "\n")
