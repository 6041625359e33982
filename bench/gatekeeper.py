"""Measures the throughput and latency of the gatekeeper, compared with a floor server that decodes and
allows each review.

    python -m bench.gatekeeper

Both serve HTTPS with persistent connections, in turns, each alone on one core. wrk sends from another core. Each round
starts both again, because the speeds of two processes with the same code differ by several percent.

A request is the update of a Deployment with a changed template, so that the gatekeeper does all of its work: parse,
compare, fingerprint, patch. The cache contains the ChangeWorkload of a rolled-back version, so the validating webhook
computes the fingerprint too. Then come deletions and evictions of pods: of pods without a budget, and of pods whose
budget allows no disruption.

Run it with a Python that is built with profile-guided optimization, as those of Debian and of the image are. Without
it, the gatekeeper loses more than the floor server.
"""

import asyncio
import contextlib
import datetime
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
from rich.console import Console
from rich.table import Table

from altershield.admission.webhooks import webhook_path
from bench import pod_reviews
from bench.processes import Server, answering, cpu, kubernetes
from bench.reviews import write_reviews
from kube_base.errors import UsageError
from kube_base.pki import Authority
from kube_base.processes import free_ports
from kube_base.resources import DEPLOYMENTS, PODS

RESULTS = Path(__file__).parent / "results" / "gatekeeper.json"
SIZES = {"8 KB": 8_000, "64 KB": 64_000, "1 MB": 1_000_000}
MEMORY_REQUESTS = 200_000
SERVER_CORE, CLIENT_CORE = 0, 1
CONNECTIONS = 8
WARM_UP_SECONDS = 1
MUTATING_PATH = webhook_path(DEPLOYMENTS, mutating=True)
VALIDATING_PATH = webhook_path(DEPLOYMENTS, mutating=False)
PODS_PATH = webhook_path(PODS, mutating=False)
EVICTIONS_PATH = webhook_path(PODS, "eviction", mutating=False)
_PODS = {
    "8 KB pod": (PODS_PATH, pod_reviews.deletion(pod_reviews.FREE)),
    "eviction": (EVICTIONS_PATH, pod_reviews.eviction(pod_reviews.FREE)),
    "8 KB pod, refused": (PODS_PATH, pod_reviews.deletion(pod_reviews.FROZEN)),
    "eviction, refused": (EVICTIONS_PATH, pod_reviews.eviction(pod_reviews.FROZEN)),
}
_DAY = datetime.timedelta(days=1)

_SCRIPT = """
local requests, next_one = {}, 0
function init(args)
  for i = 1, #args do
    local file = io.open(args[i], "rb")
    requests[i] = wrk.format("POST", nil, {["Content-Type"] = "application/json"}, file:read("*a"))
    file:close()
  end
end
function request()
  next_one = next_one % #requests + 1
  return requests[next_one]
end
function done(summary, latency, _)
  local errors = summary.errors
  io.stderr:write(string.format(
    '{"requests": %d, "seconds": %f, "p50": %f, "p99": %f, "errors": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass
class Run:
    """One run of wrk: requests per second, latencies in milliseconds, and the server's CPU time per request in
    microseconds, which depends least on other load of the machine."""

    rate: float
    p50: float
    p99: float
    cpu: float


@dataclass
class Row:
    """Medians over the rounds for a path and a size. `share` is the throughput relative to the floor server in the same
    round, `times` is the p99 relative to the floor server's."""

    size: str
    path: str
    floor_rate: float
    rate: float
    share: float
    floor_p99: float
    p99: float
    times: float
    floor_cpu: float
    cpu: float


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of one run.")] = 4,
    rounds: Annotated[int, typer.Option(help="Rounds of floor, mutate and validate.")] = 5,
    output: Annotated[Path, typer.Option(help="The JSON file for the figures.")] = RESULTS,
) -> None:
    """Compare the gatekeeper with the floor server."""
    try:
        asyncio.run(run(seconds, rounds, output))
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


async def run(seconds: float, rounds: int, output: Path) -> None:
    """Measure, print a table, and write `output`. UsageError if a program or a core is missing."""
    if shutil.which("wrk") is None:
        raise UsageError("wrk is not on PATH; install it (Debian: apt-get install wrk)")
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("two cores are needed, one for the server and one for the load")
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bodies = {}
        for size, length in SIZES.items():
            bodies[size, MUTATING_PATH] = bodies[size, VALIDATING_PATH] = write_reviews(directory, size, length)
        for size, (path, make) in _PODS.items():
            bodies[size, path] = write_reviews(directory, size.replace(",", ""), SIZES["8 KB"], make)
        pairs: dict[tuple[str, str], list[tuple[Run, Run]]] = {key: [] for key in bodies}
        for number in range(1, rounds + 1):
            console.print(f"round {number} of {rounds} …", style="dim")
            async with _servers(directory) as (floor, gatekeeper):
                for (size, path), files in bodies.items():
                    for server in (floor, gatekeeper):
                        await _wrk(server, path, files, WARM_UP_SECONDS)
                    pairs[size, path].append(
                        (await _wrk(floor, path, files, seconds), await _wrk(gatekeeper, path, files, seconds))
                    )
                if number == rounds:
                    console.print(f"memory over {MEMORY_REQUESTS:,} requests …", style="dim")
                    memory = await _memory(gatekeeper, bodies["8 KB", MUTATING_PATH])
        rows = [_row(size, path, found) for (size, path), found in pairs.items()]
    figures = {
        "taken": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": {"cpu": cpu(), "python": platform.python_version(), "aiohttp": aiohttp.__version__},
        "load": {"connections": CONNECTIONS, "seconds": seconds, "rounds": rounds},
        "rows": [asdict(row) for row in rows],
        "memory": memory,
    }
    _write(output, figures)
    console.print(_table(rows))
    console.print(
        f"memory: {memory['before']} MiB after the runs above, {memory['after']} MiB after "
        f"{memory['requests']:,} more requests; figures in {output}"
    )


def _write(output: Path, figures: dict[str, Any]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(figures, indent=2) + "\n")


def _row(size: str, path: str, pairs: list[tuple[Run, Run]]) -> Row:
    def median(values: list[float]) -> float:
        return round(statistics.median(values), 3)

    return Row(
        size=size,
        path=path,
        floor_rate=median([below.rate for below, _ in pairs]),
        rate=median([ours.rate for _, ours in pairs]),
        share=median([ours.rate / below.rate for below, ours in pairs]),
        floor_p99=median([below.p99 for below, _ in pairs]),
        p99=median([ours.p99 for _, ours in pairs]),
        times=median([ours.p99 / below.p99 for below, ours in pairs]),
        floor_cpu=median([below.cpu for below, _ in pairs]),
        cpu=median([ours.cpu for _, ours in pairs]),
    )


async def _memory(gatekeeper: Server, bodies: list[Path]) -> dict[str, int]:
    before, sent = gatekeeper.resident, 0
    while sent < MEMORY_REQUESTS:
        for path in (MUTATING_PATH, VALIDATING_PATH):
            sent += round((await _wrk(gatekeeper, path, bodies, 5)).rate * 5)
    return {"before": before, "after": gatekeeper.resident, "requests": sent}


async def _wrk(server: Server, path: str, bodies: list[Path], seconds: float) -> Run:
    script = bodies[0].parent / "wrk.lua"
    script.write_text(_SCRIPT)
    before = server.cpu
    process = await asyncio.create_subprocess_exec(
        "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--latency", "-s", str(script),
        f"https://127.0.0.1:{server.port}{path}", "--", *map(str, bodies),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {CLIENT_CORE}),
    )  # fmt: skip
    _, said = await process.communicate()
    found = json.loads(said.splitlines()[-1])
    if found["errors"]:
        raise UsageError(f"{found['errors']} of {found['requests']} requests to {path} failed; see the server's log")
    cpu = (server.cpu - before) / found["requests"] * 1e6
    return Run(found["requests"] / found["seconds"], found["p50"], found["p99"], cpu)


@contextlib.asynccontextmanager
async def _servers(directory: Path) -> AsyncIterator[tuple[Server, Server]]:
    """The floor server and the gatekeeper. The gatekeeper's Kubernetes API contains one rolled-back version."""
    pair = Authority.create("bench", lifetime=_DAY).issue("bench", hosts=["127.0.0.1"], lifetime=_DAY)
    certificate, key, kubeconfig = (directory / name for name in ("tls.crt", "tls.key", "kubeconfig"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    async with kubernetes(kubeconfig):
        ports = free_ports(2)
        commands = [
            ["bench.floor", str(ports[0]), str(certificate), str(key)],
            [
                *("gatekeeper", "--kubeconfig", str(kubeconfig), "--host", "127.0.0.1", "--shutdown-delay", "0"),
                *("--port", str(ports[1]), "--metrics-port", "0"),
                *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
            ],
        ]
        with (directory / "log").open("wb") as log:
            servers = []
            try:
                for command, port in zip(commands, ports, strict=True):
                    process = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", *command),
                        stderr=log,
                        preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CORE}),
                    )
                    servers.append(Server(process, port))
                for server in servers:
                    await answering(server, directory / "log")
                yield servers[0], servers[1]
            finally:
                for server in servers:
                    with contextlib.suppress(ProcessLookupError):
                        server.process.kill()
                    await server.process.wait()


def _table(rows: list[Row]) -> Table:
    table = Table(title="gatekeeper compared with the floor server")
    for column in (
        "body",
        "path",
        "floor req/s",
        "req/s",
        "share",
        "floor p99",
        "p99 ms",
        "times",
        "floor CPU",
        "CPU µs",
    ):
        table.add_column(column, justify="left" if column in ("body", "path") else "right")
    for row in rows:
        table.add_row(
            row.size, row.path.split("-")[0], f"{row.floor_rate:,.0f}", f"{row.rate:,.0f}", f"{row.share:.0%}",
            f"{row.floor_p99:.2f}", f"{row.p99:.2f}", f"{row.times:.2f}", f"{row.floor_cpu:,.0f}", f"{row.cpu:,.0f}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    typer.run(main)
