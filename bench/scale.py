"""Measures in a large cluster how long the reconciler blocks its event loop, and how long a new leader takes to start.

    python -m bench.scale

A reconciler leads in the simulated cluster of `bench.cluster` with 20,000 releases, which have all ended. Another task
of its event loop runs every millisecond and measures how long it had to wait: in CPU time of the thread, which does not
include other processes of the machine, and in wall time.
"""

import asyncio
import contextlib
import json
import os
import platform
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.api import names
from altershield.api.ops_config import ROLLBACK
from altershield.kube.client import Client
from bench.cluster.api import Api, kubeconfig
from bench.cluster.objects import namespace, setting
from bench.cluster.shape import REPLICAS, Shape
from reconciler.manager import Manager
from reconciler.options import Options

RESULTS = Path(__file__).parent / "results" / "scale.json"
MOST_BLOCKED = 100.0
"""Limit in milliseconds of CPU time."""
_PHASE_SECONDS = 300.0
_QUIET = 1.5  # a phase is over after so many seconds without work


@dataclass(frozen=True)
class Phase:
    """The longest block of the event loop in milliseconds (CPU time and wall time), and the phase's duration in seconds
    (wall time and CPU time)."""

    name: str
    blocked: float
    blocked_wall: float
    seconds: float
    cpu_seconds: float
    reconciles: int


class Watchdog:
    """Measures the longest time for which the event loop is blocked."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    async def run(self) -> None:
        while True:
            cpu, wall = time.thread_time(), time.perf_counter()
            await asyncio.sleep(0.001)
            self.cpu = max(self.cpu, time.thread_time() - cpu)
            self.wall = max(self.wall, time.perf_counter() - wall - 0.001)

    def take(self) -> tuple[float, float]:
        found, self.cpu, self.wall = (self.cpu, self.wall), 0.0, 0.0
        return found


async def reconcile(path: str) -> None:
    """The child process: a reconciler. Each line of input names the state to wait for: `list` or `rest`. A line of
    output has the figures."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Queue[str]()
    loop.add_reader(sys.stdin, lambda: asked.put_nowait(sys.stdin.readline()))
    watchdog = Watchdog()
    async with await Client.connect(path) as client:
        manager = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="bench",
                start_timeout=120,
                observe_seconds=10,
                batch_wait=60,
                pre_timeout=120,
                post_timeout=120,
                lease_duration=60,
                metrics_port=0,
            ),
        )
        background = [asyncio.create_task(manager.run(asyncio.Event())), asyncio.create_task(watchdog.run())]
        synced = manager.caches.required
        while True:
            wanted = (await asked.get()).strip()
            if not wanted:
                break
            worked, taken = time.monotonic(), -1
            while time.monotonic() - worked < _QUIET or not all(each.synced for each in synced):
                now = sum(queue.taken for queue in manager.queues.values())
                if now != taken or any(queue.depth for queue in manager.queues.values()):
                    worked, taken = time.monotonic(), now
                await asyncio.sleep(0.05)
                if wanted == "list" and all(each.synced for each in synced):
                    break
                for task in background:
                    if task.done():
                        task.result()
            blocked, blocked_wall = watchdog.take()
            used = resource.getrusage(resource.RUSAGE_SELF)
            figures = {
                "blocked": blocked,
                "blocked_wall": blocked_wall,
                "at": worked if wanted != "list" else time.monotonic(),
                "cpu": used.ru_utime + used.ru_stime,
                "reconciles": manager.queues["releases"].taken,
            }
            print(json.dumps(figures), flush=True)
        for task in background:
            task.cancel()


class Reconciler:
    """The child process, and the figures of the phases for which it was asked."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the child process has no pipes")
        self.phases: list[Phase] = []
        self._asked, self._answers = process.stdin, process.stdout
        self._before = {"cpu": 0.0, "reconciles": 0}

    async def phase(self, title: str, begin: Callable[[], None] = lambda: None, wanted: str = "rest") -> None:
        began = time.monotonic()
        begin()
        await asyncio.sleep(0.3 if wanted == "rest" else 0)
        self._asked.write(f"{wanted}\n".encode())
        async with asyncio.timeout(_PHASE_SECONDS):
            figures = json.loads(await self._answers.readline())
        self.phases.append(
            Phase(
                title,
                round(figures["blocked"] * 1000, 1),
                round(figures["blocked_wall"] * 1000, 1),
                round(figures["at"] - began, 1),
                round(figures["cpu"] - self._before["cpu"], 1),
                figures["reconciles"] - self._before["reconciles"],
            )
        )
        print(self.phases[-1], file=sys.stderr)
        self._before = figures


@contextlib.asynccontextmanager
async def _reconciling(api: Api) -> AsyncIterator[Reconciler]:
    with tempfile.TemporaryDirectory() as name:
        async with api.serving() as url:
            with kubeconfig(Path(name), url) as path:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "bench.scale", "--reconcile", str(path)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                try:
                    yield Reconciler(process)
                finally:
                    process.kill()
                    await process.wait()


async def measure(shape: Shape) -> tuple[list[Phase], Counter[str]]:
    api = Api(shape, lead=True)
    api.prepare()

    def change_setting(name: str, **changes: object) -> None:
        api.send("opsconfiginfoes", "MODIFIED", msgspec.to_builtins(setting(name, **changes)))

    def annotate() -> None:
        for number in range(100):
            api.send("namespaces", "MODIFIED", namespace(number, note="new"))

    def govern(*, governed: bool) -> None:
        api.send("namespaces", "MODIFIED" if governed else "DELETED", namespace(7, governed=governed))

    async with _reconciling(api) as reconciler:
        await reconciler.phase("list all", wanted="list")
        await reconciler.phase("take over")
        await reconciler.phase("change a setting", lambda: change_setting(ROLLBACK, content="30%"))
        await reconciler.phase("annotate all Namespaces", annotate)
        await reconciler.phase("a Namespace is no longer governed", lambda: govern(governed=False))
        await reconciler.phase("the Namespace is governed again", lambda: govern(governed=True))
        await reconciler.phase("list all again", api.forget)
    asked = Counter(
        f"{method} {target.partition('?')[0].rpartition('/')[2]}" if method == "GET" else f"{method} {target}"
        for _, method, target in api.requests
        if method != "GET" or "watch" not in target
    )
    return reconciler.phases, asked


def main(
    pods: Annotated[int, typer.Option(help="Governed pods, five to a Deployment.")] = 100_000,
    reconcile_: Annotated[str, typer.Option("--reconcile", hidden=True)] = "",
) -> None:
    """Measure all phases. Exits with 1 if the event loop is blocked for too long."""
    if reconcile_:
        uvloop.run(reconcile(reconcile_))
        return
    shape = Shape(pods // REPLICAS, fat=0)
    phases, asked = uvloop.run(measure(shape))
    title = f"{shape.pods:,} pods in {shape.deployments:,} Deployments of {shape.revisions} ReplicaSets"
    table = Table("", "longest block", "in wall time", "duration", "CPU", "reconciles", title=title)
    for each in phases:
        times = (
            f"{each.blocked:.0f} ms",
            f"{each.blocked_wall:.0f} ms",
            f"{each.seconds:.1f} s",
            f"{each.cpu_seconds:.1f} s",
        )
        table.add_row(each.name, *times, f"{each.reconciles:,}")
    Console().print(table)
    print("requests other than watches:", dict(asked.most_common(20)))
    taken = {"python": platform.python_version(), "cores": os.cpu_count(), "pods": pods}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(taken | {"phases": [asdict(each) for each in phases]}, indent=2) + "\n")
    if max(each.blocked for each in phases) > MOST_BLOCKED:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
