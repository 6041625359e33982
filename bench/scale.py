"""Measures a reconciler at the limits that Kubernetes supports: how long it blocks its event loop, how soon it decides,
its memory and its writes.

    python -m bench.scale

The cluster of `bench.cluster` has 25,000 releases, which have all ended. The reconciler follows as a standby, then it
takes the Lease. Some workloads were released while nobody led. Then come the changes that concern many objects, and
releases: of 1,000 workloads at once, and of the Deployment of 10,000 pods.

Another task of the reconciler's event loop runs every millisecond and measures how long it had to wait: in CPU time of
the thread, which does not include other processes of the machine, and in wall time.
"""

import asyncio
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.api.ops_config import ROLLBACK
from bench.cluster.api import kubeconfig
from bench.cluster.objects import namespace, setting
from bench.cluster.shape import Shape, limits
from bench.fleet.api import FleetApi, Traffic
from bench.fleet.events import Fleet
from bench.fleet.phases import quantiles
from bench.fleet.reviews import labeled
from bench.fleet.waits import until
from bench.held_loop import Sample
from reconciler import thresholds

RESULTS = Path(__file__).parent / "results" / "scale.json"
MOST_BLOCKED = 100.0
"""Limit in milliseconds of CPU time."""
_PHASE_SECONDS = 600.0
_BEFORE = 20
"""Workloads that are released while nobody leads."""
_WRITES = ("create", "patch", "update", "delete")


@dataclass(frozen=True)
class Phase:
    """The longest block of the event loop in milliseconds (CPU time and wall time), the phase's duration in seconds
    (wall time and CPU time), and the memory at its end and at most so far in MiB.

    `verdicts`: the number of pods with a verdict in this phase, and the median and the 99th percentile of the seconds
    from the end of the pod's observation to the verdict. `writes`: API writes for each of these pods: to the pod and
    its ChangePod, and all.
    """

    name: str
    blocked: float
    blocked_wall: float
    seconds: float
    cpu_seconds: float
    reconciles: int
    resident: int
    peak: int
    verdicts: tuple[int, float, float]
    writes: tuple[float, float]


class Reconciler:
    """The child process, and the figures of the phases for which it was asked."""

    def __init__(self, process: asyncio.subprocess.Process, api: FleetApi) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the child process has no pipes")
        self.phases: list[Phase] = []
        self._asked, self._answers = process.stdin, process.stdout
        self._api = api
        self._before = Sample()

    async def phase(self, title: str, begin: Callable[[], object] = lambda: None, wanted: str = "rest") -> None:
        """Begin a phase, and wait until it is over. `begin` may return an awaitable that belongs to the phase."""
        began = time.monotonic()
        begun = begin()
        if asyncio.iscoroutine(begun):
            await begun
        await asyncio.sleep(0.3 if wanted == "rest" else 0)
        self._asked.write(f"{wanted}\n".encode())
        async with asyncio.timeout(_PHASE_SECONDS):
            sample = msgspec.json.decode(await self._answers.readline(), type=Sample)
        before, self._before = self._before, sample
        verdicts, writes = _decided(self._api.take())
        self.phases.append(
            Phase(
                title,
                round(sample.blocked * 1000, 1),
                round(sample.blocked_wall * 1000, 1),
                round(sample.at - began, 1),
                round(sample.cpu - before.cpu, 1),
                sample.reconciles - before.reconciles,
                sample.resident,
                sample.peak,
                verdicts,
                writes,
            )
        )
        print(self.phases[-1], file=sys.stderr)


def _decided(traffic: Traffic) -> tuple[tuple[int, float, float], tuple[float, float]]:
    verdicts = quantiles(judged - ready - thresholds.OBSERVE_SECONDS for ready, judged in traffic.verdicts)
    writes = {key: count for key, count in traffic.by_kind.items() if key.startswith(_WRITES) and "lease" not in key}
    of_pods = sum(count for key, count in writes.items() if "pods" in key)
    pods = max(1, len(traffic.verdicts))
    return verdicts, (round(of_pods / pods, 2), round(sum(writes.values()) / pods, 2))


@contextlib.asynccontextmanager
async def _reconciling(api: FleetApi) -> AsyncIterator[Reconciler]:
    with tempfile.TemporaryDirectory() as name:
        async with api.serving() as url:
            with kubeconfig(Path(name), url) as path:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "bench.held_loop", str(path)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                bookmarks = asyncio.create_task(api.bookmark())
                try:
                    yield Reconciler(process, api)
                    process.stdin.close()  # type: ignore[union-attr]
                    await process.wait()
                finally:
                    bookmarks.cancel()
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                    await process.wait()


async def measure(shape: Shape, releases: int, starts: float) -> tuple[list[Phase], float, Counter[str]]:
    """The phases, the seconds from the new Lease to the first verdict, and the requests other than watches."""
    api = FleetApi(shape, lead=False)
    api.prepare()
    fleet = Fleet(api, labeled, starts)

    def change_setting(name: str, **changes: object) -> None:
        api.send("opsconfiginfoes", "MODIFIED", msgspec.to_builtins(setting(name, **changes)))

    def annotate() -> None:
        for number in range(shape.namespaces):
            api.send("namespaces", "MODIFIED", namespace(number, note="new"))

    def govern(*, governed: bool) -> None:
        api.send("namespaces", "MODIFIED" if governed else "DELETED", namespace(0, governed=governed))

    async def release(workloads: Iterable[int]) -> None:
        await fleet.wave(list(workloads))
        await until(lambda: not api.ready)

    async def release_unled() -> None:
        await fleet.wave(range(shape.deployments - _BEFORE, shape.deployments))
        await asyncio.sleep(thresholds.OBSERVE_SECONDS)

    first_verdict = 0.0

    async def take_over() -> None:
        nonlocal first_verdict
        api.lead = True
        await until(lambda: bool(api.traffic.verdicts))
        first_verdict = min(judged for _, judged in api.traffic.verdicts) - (api.taken or 0.0)
        await until(lambda: not api.ready)

    async with _reconciling(api) as reconciler:
        await reconciler.phase("list all", wanted="list")
        await reconciler.phase("follow as a standby", release_unled, wanted="list")
        await reconciler.phase("take over", take_over)
        await reconciler.phase("change a setting", lambda: change_setting(ROLLBACK, content="30%"))
        await reconciler.phase("annotate all Namespaces", annotate)
        await reconciler.phase("the largest Namespace is no longer governed", lambda: govern(governed=False))
        await reconciler.phase("it is governed again", lambda: govern(governed=True))
        await reconciler.phase("list all again", api.forget)
        step = shape.deployments // (releases + 1)
        several = range(1, shape.deployments, step)[:releases]
        await reconciler.phase(f"release {releases:,} at once", lambda: release(several))
        await reconciler.phase(f"release {shape.largest:,} pods", lambda: release([0]))
    asked = Counter(
        f"{method} {target.partition('?')[0].rpartition('/')[2]}" if method == "GET" else f"{method} {target}"
        for _, method, target in api.requests
        if method != "GET" or "watch" not in target
    )
    return reconciler.phases, first_verdict, asked


def main(
    scale: Annotated[float, typer.Option(help="Part or multiple of the limits of Kubernetes.")] = 1.0,
    releases: Annotated[int, typer.Option(help="Releases at once.")] = 1000,
    starts: Annotated[float, typer.Option(help="Pods of releases that are created in a second.")] = 50.0,
) -> None:
    """Measure all phases. Exits with 1 if the event loop is blocked for too long."""
    shape = limits(scale, fat=0)
    phases, first_verdict, asked = uvloop.run(measure(shape, releases, starts))
    table = Table("", "longest block", "duration", "CPU", "memory", "verdicts", "writes", title=shape.title)
    for each in phases:
        count, median, last = each.verdicts
        table.add_row(
            each.name,
            f"{each.blocked:.0f} ms ({each.blocked_wall:.0f})",
            f"{each.seconds:.1f} s",
            f"{each.cpu_seconds:.1f} s, {each.reconciles:,} reconciles",
            f"{each.resident} of {each.peak} MiB",
            f"{count:,}: p50 {median:.2f} s, p99 {last:.2f} s" if count else "",
            "{:.2f} of {:.2f}".format(*each.writes) if count else "",
        )
    Console(width=160).print(table)
    print(f"first verdict {first_verdict:.1f} s after the Lease was taken")
    print("requests other than watches:", dict(asked.most_common(20)))
    taken = {"python": platform.python_version(), "cores": os.cpu_count(), **asdict(shape), "starts": starts}
    RESULTS.parent.mkdir(exist_ok=True)
    taken |= {"first_verdict": first_verdict, "phases": [asdict(each) for each in phases]}
    RESULTS.write_text(json.dumps(taken, indent=2) + "\n")
    if max(each.blocked for each in phases) > MOST_BLOCKED:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
