"""How much memory do a gatekeeper and a standby reconciler need, at the limits that Kubernetes supports?

Measured: the API server is simulated; its objects are as large as real ones. Both processes list them. Then all
versions expire, so that both list everything again while their caches are full.

How to read it: the chart's requests follow from the memory at rest, its limits from the memory at most. Wait for a
machine without other work: the end of a phase is seen by an idle process.
"""

import asyncio
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from altershield.process.health import until_ready
from bench.harness import proc
from bench.harness.answer import Answer, exceeded
from bench.harness.servers import certificate, gatekeeper, reconciler, running, write_kubeconfig
from bench.simulated.api import Api
from bench.simulated.shape import Shape, limits
from kube_base.processes import free_ports

RUNS: tuple[tuple[str, ...], ...] = ((), ("--budgets", "5000"))
AT_REST = 400
"""Limit for the memory of a standby, in MiB."""
LISTING = 550
"""Limit for the memory of a reconciler while it lists everything again, in MiB."""
_LISTS_AGAIN = 2
_READY_SECONDS = 300.0
_IDLE = 0.1  # seconds of CPU time in a second, below which a process has nothing to do
_IDLE_SECONDS = 3


@dataclass(frozen=True)
class Figure:
    """Memory in MiB: at rest; the maximum during the first list and the lists after it; at rest afterwards. Seconds
    until the process was ready, and its CPU time until then."""

    resident: int
    peak: int
    after: int
    seconds: float
    cpu_seconds: float


async def ask(
    scale: Annotated[float, typer.Option(help="Part or multiple of the limits of Kubernetes.")] = 1.0,
    budgets: Annotated[int, typer.Option(help="PodUnavailableBudgets, each for another Deployment.")] = 0,
    only: Annotated[str, typer.Option(help="gatekeeper or reconciler.")] = "",
) -> Answer:
    shape = limits(scale, budgets=budgets)
    figures = {each: await _measure(each, shape) for each in ("gatekeeper", "reconciler") if only in ("", each)}
    title = shape.title + (f", {budgets:,} budgets" if budgets else "")
    table = Table("", "at rest", "at most", "after two relists", "ready after", "CPU until ready", title=title)
    for module, each in figures.items():
        sizes = (f"{size} MiB" for size in (each.resident, each.peak, each.after))
        table.add_row(module, *sizes, f"{each.seconds:.1f} s", f"{each.cpu_seconds:.1f} s")
    wrong = []
    found = figures.get("reconciler")
    if found is not None and scale >= 1 and not budgets:
        wrong += exceeded("a standby at rest", max(found.resident, found.after), AT_REST, " MiB")
        wrong += exceeded("a standby that lists again", found.peak, LISTING, " MiB")
    return Answer(asdict(shape) | {key: asdict(each) for key, each in figures.items()}, [table], wrong=wrong)


async def _measure(module: str, shape: Shape) -> Figure:
    """Start the process, wait until it is ready, and let it list everything again."""
    api = Api(shape, lead=False)
    api.prepare()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        port, metrics_port = free_ports(2)
        async with api.serving() as url:
            config = write_kubeconfig(directory / "kubeconfig", url)
            command = (
                gatekeeper(config, port, certificate(directory), metrics_port=metrics_port)
                if module == "gatekeeper"
                else reconciler(config, metrics_port=metrics_port)
            )
            began = time.monotonic()
            async with running(command) as process:
                async with asyncio.timeout(_READY_SECONDS):
                    await until_ready([metrics_port])
                seconds, cpu = time.monotonic() - began, proc.cpu(process.pid)
                await _until_idle(process.pid)
                resident, listed = proc.memory(process.pid), api.listed
                for again in range(1, _LISTS_AGAIN + 1):
                    api.forget()
                    async with asyncio.timeout(_READY_SECONDS):
                        while api.listed < (again + 1) * listed:  # noqa: ASYNC110  (another process lists)
                            await asyncio.sleep(0.2)
                    await _until_idle(process.pid)
                peak, after = proc.memory(process.pid, "VmHWM"), proc.memory(process.pid)
                return Figure(resident, peak, after, round(seconds, 1), round(cpu, 1))


async def _until_idle(pid: int) -> None:
    """Wait until a process has filled its caches. It is ready before the caches of budgets are filled."""
    idle, before = 0, proc.cpu(pid)
    async with asyncio.timeout(_READY_SECONDS):
        while idle < _IDLE_SECONDS:
            await asyncio.sleep(1)
            after = proc.cpu(pid)
            idle, before = idle + 1 if after - before < _IDLE else 0, after
