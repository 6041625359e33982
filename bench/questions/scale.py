"""What does a reconciler at the limits of Kubernetes need: how long is its event loop held, how soon does it decide?

Measured: the simulated cluster has 25,000 releases, which have all ended. The reconciler follows as a standby, then it
takes the Lease. Some workloads were released while nobody led. Then come the changes that concern many objects, and
releases: of 1,000 workloads at once, and of the Deployment of 10,000 pods. Another task of the reconciler's event loop
(`bench.harness.held_loop`) runs every millisecond and measures how long it had to wait: in CPU time of the thread,
garbage collection included, and (in brackets) in wall time.

How to read it: only the CPU time of the longest block is bounded, because wall time includes other processes. The
seconds of a verdict begin at the end of the pod's observation. Writes are API writes for each of these pods: to the pod
and its ChangePod, of all.
"""

import asyncio
import contextlib
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
from rich.table import Table

from altershield.api.ops_config import ROLLBACK
from bench.harness.answer import Answer, exceeded, quantiles
from bench.harness.held_loop import Sample
from bench.harness.servers import PIPE, end_of, module, running, write_kubeconfig
from bench.harness.waiting import until, until_judged
from bench.simulated.api import Api, Traffic
from bench.simulated.events import Fleet
from bench.simulated.gatekeeper import labeled
from bench.simulated.objects import namespace, setting
from bench.simulated.shape import Shape, limits
from reconciler import thresholds

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

    def __init__(self, process: asyncio.subprocess.Process, log: Path, api: Api) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the child process has no pipes")
        self.phases: list[Phase] = []
        self.requests: Counter[str] = Counter()
        """Of all phases, by verb and resource."""
        self._asked, self._answers = process.stdin, process.stdout
        self._log, self._api = log, api
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
            line = await self._answers.readline()
        if not line:
            raise RuntimeError(f"the reconciler ended in the phase {title}: {end_of(self._log)}")
        sample = msgspec.json.decode(line, type=Sample)
        before, self._before = self._before, sample
        traffic = self._api.take()
        self.requests += traffic.by_kind
        verdicts, writes = _decided(traffic)
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
async def _reconciling(api: Api) -> AsyncIterator[Reconciler]:
    with tempfile.TemporaryDirectory() as name:
        async with api.serving() as url:
            command = module("bench.harness.held_loop", str(write_kubeconfig(Path(name, "kubeconfig"), url)))
            async with running(command, log=Path(name, "log"), stdin=PIPE, stdout=PIPE) as process:
                bookmarks = asyncio.create_task(api.bookmark())
                try:
                    yield Reconciler(process, Path(name, "log"), api)
                    process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
                    await process.wait()  # it may write a profile
                finally:
                    bookmarks.cancel()


async def _measure(shape: Shape, releases: int, starts: float) -> tuple[Reconciler, float]:
    """The phases, and the seconds from the new Lease to the first verdict."""
    api = Api(shape, lead=False)
    api.prepare()
    fleet = Fleet(api, labeled, starts)

    def change_setting(name: str, **changes: object) -> None:
        api.send("opsconfiginfoes", "MODIFIED", msgspec.to_builtins(setting(name, **changes)))

    def annotate() -> None:
        for number in range(shape.namespaces):
            api.send("namespaces", "MODIFIED", namespace(number, note="new"))

    def govern(*, governed: bool) -> None:
        api.send("namespaces", "MODIFIED" if governed else "DELETED", namespace(0, governed=governed))

    async def list_again() -> None:
        expected = api.listed + api.forget()
        await until(lambda: api.listed >= expected, "the lists", _PHASE_SECONDS)

    async def release(workloads: Iterable[int]) -> None:
        await fleet.wave(list(workloads))
        await until_judged(lambda: not api.ready)

    async def release_unled() -> None:
        await fleet.wave(range(shape.deployments - _BEFORE, shape.deployments))
        await asyncio.sleep(thresholds.OBSERVE_SECONDS)

    first_verdict = 0.0

    async def take_over() -> None:
        nonlocal first_verdict
        api.lead = True
        await until_judged(lambda: bool(api.traffic.verdicts))
        first_verdict = min(judged for _, judged in api.traffic.verdicts) - (api.taken or 0.0)
        await until_judged(lambda: not api.ready)

    async with _reconciling(api) as reconciler:
        await reconciler.phase("list all", wanted="list")
        await reconciler.phase("follow as a standby", release_unled, wanted="list")
        await reconciler.phase("take over", take_over)
        await reconciler.phase("change a setting", lambda: change_setting(ROLLBACK, content="30%"))
        await reconciler.phase("annotate all Namespaces", annotate)
        await reconciler.phase("the largest Namespace is no longer governed", lambda: govern(governed=False))
        await reconciler.phase("it is governed again", lambda: govern(governed=True))
        await reconciler.phase("list all again", list_again)
        step = max(1, shape.deployments // (releases + 1))
        several = range(1, shape.deployments, step)[:releases]
        await reconciler.phase(f"release {releases:,} at once", lambda: release(several))
        await reconciler.phase(f"release {shape.largest:,} pods", lambda: release([0]))
    return reconciler, first_verdict


async def ask(
    scale: Annotated[float, typer.Option(help="Part or multiple of the limits of Kubernetes.")] = 1.0,
    releases: Annotated[int, typer.Option(help="Releases at once.")] = 1000,
    starts: Annotated[float, typer.Option(help="Pods of releases that are created in a second.")] = 50.0,
) -> Answer:
    shape = limits(scale, fat=0)
    reconciler, first_verdict = await _measure(shape, releases, starts)
    table = Table("", "longest block", "duration", "CPU", "memory", "verdicts", "writes", title=shape.title)
    for each in reconciler.phases:
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
    asked = {
        key: count for key, count in reconciler.requests.most_common() if "watch" not in key and "lease" not in key
    }
    notes = [f"first verdict {first_verdict:.1f} s after the Lease was taken", f"requests other than watches: {asked}"]
    wrong = [
        line
        for each in reconciler.phases
        for line in exceeded(f"{each.name}: longest block", each.blocked, MOST_BLOCKED, " ms")
    ]
    phases = [asdict(each) for each in reconciler.phases]
    return Answer({**asdict(shape), "first_verdict": first_verdict, "phases": phases}, [table], notes, wrong)
