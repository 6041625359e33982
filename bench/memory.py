"""Measures the memory of a gatekeeper and of a standby reconciler at the limits that Kubernetes supports.

    python -m bench.memory

The API server is simulated; its objects are as large as real ones. Both processes list them. Then all versions expire,
so that both list everything again while their caches are full. The chart's requests and limits follow from the figures.
"""

import asyncio
import datetime
import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.process.health import until_ready
from bench.cluster.api import Api, kubeconfig
from bench.cluster.shape import Shape, limits
from kube_base.pki import Authority
from kube_base.processes import free_ports

RESULTS = Path(__file__).parent / "results" / "memory.json"
AT_REST = 400
"""Limit for the memory of a standby, in MiB."""
LISTING = 550
"""Limit for the memory of a reconciler while it lists everything again, in MiB."""
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


async def measure(module: str, shape: Shape, *, lists_again: int = 2) -> Figure:
    """Start the process, wait until it is ready, and let it list everything again."""
    api = Api(shape)
    api.prepare()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with api.serving() as url:
            with kubeconfig(directory, url) as path:
                port, metrics_port = free_ports(2)
                options = ["--kubeconfig", str(path), "--metrics-port", str(metrics_port)]
                if module == "gatekeeper":
                    options += ["--host", "127.0.0.1", "--port", str(port), *certificate_options(directory)]
                began = time.monotonic()
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", module, *options, stderr=asyncio.subprocess.DEVNULL
                )
                try:
                    async with asyncio.timeout(_READY_SECONDS):
                        await until_ready([metrics_port])
                    seconds, cpu = time.monotonic() - began, _cpu(process.pid)
                    await _until_idle(process.pid)
                    resident = _memory(process.pid, "VmRSS")
                    listed = api.listed
                    for again in range(1, lists_again + 1):
                        api.forget()
                        async with asyncio.timeout(_READY_SECONDS):
                            while api.listed < (again + 1) * listed:  # noqa: ASYNC110  (another process lists)
                                await asyncio.sleep(0.2)
                        await _until_idle(process.pid)
                    peak, after = _memory(process.pid, "VmHWM"), _memory(process.pid, "VmRSS")
                    return Figure(resident, peak, after, round(seconds, 1), round(cpu, 1))
                finally:
                    process.kill()
                    await process.wait()


def certificate_options(directory: Path) -> list[str]:
    """Write a certificate for 127.0.0.1. Returns the gatekeeper's options for it."""
    pair = Authority.create("bench", lifetime=datetime.timedelta(days=1)).issue(
        "gatekeeper", hosts=["127.0.0.1"], lifetime=datetime.timedelta(days=1)
    )
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    return ["--tls-cert-file", str(directory / "tls.crt"), "--tls-private-key-file", str(directory / "tls.key")]


async def _until_idle(pid: int) -> None:
    """Wait until a process has filled its caches. It is ready before the caches of budgets are filled."""
    idle, before = 0, _cpu(pid)
    async with asyncio.timeout(_READY_SECONDS):
        while idle < _IDLE_SECONDS:
            await asyncio.sleep(1)
            after = _cpu(pid)
            idle, before = idle + 1 if after - before < _IDLE else 0, after


def _memory(pid: int, field: str) -> int:
    """A memory field of a process in /proc, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:"))
    return kib // 1024


def _cpu(pid: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main(
    scale: Annotated[float, typer.Option(help="Part or multiple of the limits of Kubernetes.")] = 1.0,
    budgets: Annotated[int, typer.Option(help="PodUnavailableBudgets, each for another Deployment.")] = 0,
    only: Annotated[str, typer.Option(help="gatekeeper or reconciler.")] = "",
) -> None:
    """Measure both processes. Exits with 1 if the reconciler exceeds a limit."""
    shape = limits(scale, budgets=budgets)
    modules = [each for each in ("gatekeeper", "reconciler") if only in ("", each)]
    figures = {module: uvloop.run(measure(module, shape)) for module in modules}
    title = shape.title + (f", {budgets:,} budgets" if budgets else "")
    table = Table("", "at rest", "at most", "after two relists", "ready after", "CPU until ready", title=title)
    for module, each in figures.items():
        sizes = (f"{size} MiB" for size in (each.resident, each.peak, each.after))
        table.add_row(module, *sizes, f"{each.seconds:.1f} s", f"{each.cpu_seconds:.1f} s")
    Console().print(table)
    taken = {"python": platform.python_version(), **asdict(shape)} | {
        key: asdict(each) for key, each in figures.items()
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(taken, indent=2) + "\n")
    found = figures.get("reconciler")
    if (
        found is not None
        and scale >= 1
        and not budgets
        and (max(found.resident, found.after) > AT_REST or found.peak > LISTING)
    ):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
