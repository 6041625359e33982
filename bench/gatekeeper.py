"""How fast the gatekeeper answers, beside a floor server that parses nothing.

    python -m bench.gatekeeper

Both serve HTTPS with kept connections, each alone on one core, in turns; wrk sends from another. A request is
the update of a Deployment with a changed template, so that the gatekeeper has all its work to do: parse, compare,
fingerprint, patch; and to validate, a record of another version's rollback, so that it must fingerprint again.
"""

import asyncio
import contextlib
import datetime
import json
import os
import platform
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
import yaml
from aiohttp import web
from rich.console import Console
from rich.table import Table

from altershield.api import labels, names
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.errors import UsageError
from altershield.install.webhooks import MUTATING_PATH, VALIDATING_PATH
from altershield.pki import Authority

RESULTS = Path(__file__).parent / "results" / "gatekeeper.json"
SIZES = {"4 KB": 4_000, "64 KB": 64_000, "1 MB": 1_000_000}
MEMORY_REQUESTS = 200_000
SERVER_CORE, CLIENT_CORE = 0, 1
CONNECTIONS = 8
BODIES = 16  # different ones, sent in turn
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
    """One run of wrk: requests per second and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float


@dataclass
class Row:
    """A path at a size, medians over the rounds; `share` is of the floor's throughput in the same round, and
    `p99_share` of its p99."""

    size: str
    path: str
    floor_rate: float
    rate: float
    share: float
    floor_p99: float
    p99: float
    p99_share: float


@dataclass
class Server:
    process: asyncio.subprocess.Process
    port: int

    @property
    def resident(self) -> int:
        """MiB of memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of one run.")] = 4,
    rounds: Annotated[int, typer.Option(help="Rounds of floor, mutate and validate.")] = 5,
    output: Annotated[Path, typer.Option(help="Where the figures go as JSON.")] = RESULTS,
) -> None:
    """Measure the gatekeeper against the floor."""
    try:
        asyncio.run(run(seconds, rounds, output))
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


async def run(seconds: float, rounds: int, output: Path) -> None:
    """Measure, print a table and write `output`. UsageError where something is missing."""
    if shutil.which("wrk") is None:
        raise UsageError("wrk is not on PATH; install it (Debian: apt-get install wrk)")
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("two cores are needed, one for the server and one for the load")
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with _servers(directory) as (floor, gatekeeper):
            rows = []
            for size, length in SIZES.items():
                bodies = _bodies(directory, size, length)
                for path in (MUTATING_PATH, VALIDATING_PATH):
                    console.print(f"{size} {path}: {rounds} rounds …", style="dim")
                    rows.append(await _measure(floor, gatekeeper, size, path, bodies, seconds, rounds))
            console.print(f"memory over {MEMORY_REQUESTS:,} requests …", style="dim")
            memory = await _memory(gatekeeper, _bodies(directory, "memory", SIZES["4 KB"]))
    figures = {
        "taken": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": {"cpu": _cpu(), "python": platform.python_version(), "aiohttp": aiohttp.__version__},
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


async def _measure(
    floor: Server, gatekeeper: Server, size: str, path: str, bodies: list[Path], seconds: float, rounds: int
) -> Row:
    pairs = []
    for number in range(rounds + 1):
        pair = [await _wrk(server.port, path, bodies, seconds) for server in (floor, gatekeeper)]
        if number:  # the first round warms up
            pairs.append(pair)

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
        p99_share=median([ours.p99 / below.p99 for below, ours in pairs]),
    )


async def _memory(gatekeeper: Server, bodies: list[Path]) -> dict[str, int]:
    before, sent = gatekeeper.resident, 0
    while sent < MEMORY_REQUESTS:
        for path in (MUTATING_PATH, VALIDATING_PATH):
            sent += round((await _wrk(gatekeeper.port, path, bodies, 5)).rate * 5)
    return {"before": before, "after": gatekeeper.resident, "requests": sent}


async def _wrk(port: int, path: str, bodies: list[Path], seconds: float) -> Run:
    script = bodies[0].parent / "wrk.lua"
    script.write_text(_SCRIPT)
    process = await asyncio.create_subprocess_exec(
        "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--latency", "-s", str(script),
        f"https://127.0.0.1:{port}{path}", "--", *map(str, bodies),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {CLIENT_CORE}),
    )  # fmt: skip
    _, said = await process.communicate()
    found = json.loads(said.splitlines()[-1])
    if found["errors"]:
        raise UsageError(f"{found['errors']} of {found['requests']} requests to {path} failed; see the server's log")
    return Run(found["requests"] / found["seconds"], found["p50"], found["p99"])


@contextlib.asynccontextmanager
async def _servers(directory: Path) -> AsyncIterator[tuple[Server, Server]]:
    """The floor and the gatekeeper, the latter on a Kubernetes API with one rolled-back version in it."""
    pair = Authority.create("bench", lifetime=_DAY).issue("bench", hosts=["127.0.0.1"], lifetime=_DAY)
    certificate, key, kubeconfig = (directory / name for name in ("tls.crt", "tls.key", "kubeconfig"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    async with _kubernetes(kubeconfig):
        ports = _free_ports(2)
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
                    await _answering(server, directory / "log")
                yield servers[0], servers[1]
            finally:
                for server in servers:
                    with contextlib.suppress(ProcessLookupError):
                        server.process.kill()
                    await server.process.wait()


async def _answering(server: Server, log: Path) -> None:
    """Wait until the server is ready; the floor knows no readiness, any answer will do."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        while True:
            if server.process.returncode is not None:
                raise UsageError(f"a server ended at its start: {_tail(log)}")
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"https://127.0.0.1:{server.port}/readyz", ssl=False) as answer:
                    if answer.status != 503:
                        return
            await asyncio.sleep(0.05)


def _tail(log: Path) -> str:
    return log.read_text()[-500:]


@contextlib.asynccontextmanager
async def _kubernetes(kubeconfig: Path) -> AsyncIterator[None]:
    """As much of a Kubernetes API as the gatekeeper follows, and a kubeconfig for it."""
    record = {
        "metadata": {"name": names.change_workload_name("sleep", "0" * 32), "namespace": "default"},
        "status": {"status": "Rollback"},
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            watch = web.StreamResponse()
            await watch.prepare(request)
            await asyncio.Event().wait()
        items = [record] if request.path.endswith(CHANGE_WORKLOADS.plural) else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    _write_kubeconfig(kubeconfig, f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield
    finally:
        await runner.cleanup()


def _write_kubeconfig(file: Path, server: str) -> None:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": server}}],
        "users": [{"name": "bench", "user": {"token": "none"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    file.write_text(yaml.safe_dump(content))


def _bodies(directory: Path, name: str, length: int) -> list[Path]:
    """Files with reviews of about `length` bytes, each of another release."""
    files = []
    for number in range(BODIES):
        small = len(json.dumps(_review(number, 0), separators=(",", ":")))
        one_more = len(json.dumps(_review(number, 1), separators=(",", ":"))) - small
        body = json.dumps(_review(number, max(0, length - small) // one_more), separators=(",", ":"))
        files.append(directory / f"{name.replace(' ', '')}-{number}.json")
        files[-1].write_text(body)
    return files


def _review(number: int, variables: int) -> dict[str, Any]:
    """The update of a Deployment whose containers have that many environment variables."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": f"09907f64-4eb8-47da-b46d-5ac0427e{number:04x}",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "requestResource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "name": "sleep",
            "namespace": "default",
            "operation": "UPDATE",
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": _deployment(f"busybox:{number + 1}", variables),
            "oldObject": _deployment("busybox:0", variables),
            "dryRun": False,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"},
        },
    }


def _deployment(image: str, variables: int) -> dict[str, Any]:
    version = "c6c45d23c098bdf181853a85b60b5d74"
    container = {
        "name": "sleep",
        "image": image,
        "command": ["/bin/sleep", "infinity"],
        "env": [{"name": f"VARIABLE_{n}", "value": f"the value of variable {n}"} for n in range(variables)],
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": "sleep",
            "namespace": "default",
            "uid": "a9b8b77c-ebaa-48d7-915f-bb8c02f5ce91",
            "resourceVersion": "199426",
            "generation": 2,
            "creationTimestamp": "2023-05-11T07:46:13Z",
            "labels": {"app": "sleep", labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED},
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "managedFields": [
                {
                    "manager": "kubectl",
                    "operation": "Update",
                    "apiVersion": "apps/v1",
                    "time": "2023-05-11T07:46:13Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {}}}},
                }
            ],
        },
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "sleep"}},
            "template": {
                "metadata": {"labels": {"app": "sleep", labels.VERSION: version}},
                "spec": {
                    "containers": [container],
                    "restartPolicy": "Always",
                    "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst",
                    "securityContext": {},
                    "schedulerName": "default-scheduler",
                },
            },
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        "status": {"observedGeneration": 2, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5},
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"


def _table(rows: list[Row]) -> Table:
    table = Table(title="gatekeeper against the floor")
    for column in ("body", "path", "floor req/s", "req/s", "share", "floor p99 ms", "p99 ms", "times"):
        table.add_column(column, justify="left" if column in ("body", "path") else "right")
    for row in rows:
        table.add_row(
            row.size, row.path, f"{row.floor_rate:,.0f}", f"{row.rate:,.0f}", f"{row.share:.0%}",
            f"{row.floor_p99:.2f}", f"{row.p99:.2f}", f"{row.p99_share:.2f}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    typer.run(main)
