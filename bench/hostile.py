"""Latencies of legitimate reviews, and the gatekeeper's memory, while hostile callers send requests.

    python -m bench.hostile

The gatekeeper runs on one core. 40 attackers without credentials run in another process on the other core. In each
phase, each attacker repeats one attack without a pause. Meanwhile the bench sends reviews of 8 KB at fixed times on
persistent connections, as API servers do. Latencies count from these times. A review fails if it has no answer of 200
within the chart's timeout.

The bench runs on the attackers' core. Other work on the machine delays all of them, so the table has each p99 twice:
as measured, and without the time for which the gatekeeper, or the bench itself, was ready to run but had no core
(`/proc/PID/schedstat`; the longer of the two). The column `core` is the share that the gatekeeper used of the time for
which it had a core or needed none: near 100 %, the attackers keep it busy.
"""

import asyncio
import contextlib
import datetime
import functools
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import aiohttp
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.admission.webhooks import webhook_path
from altershield.api.resources import DEPLOYMENTS
from altershield.pki import Authority
from bench.processes import Server, answering, cpu, free_ports, kubernetes, waited_for_a_core
from bench.reviews import write_reviews

RESULTS = Path(__file__).parent / "results" / "hostile.json"
ATTACKERS = 40
MOST_P99 = 500.0  # milliseconds
MOST_MEMORY = 512  # MiB: the chart's limit
_PATH = webhook_path(DEPLOYMENTS, mutating=True)
_RATE = 50  # legitimate reviews a second
_TIMEOUT = 2.0  # seconds; the chart's for the mutating webhook
_SERVER_CORE, _CLIENT_CORE = 0, 1
_MIB = 2**20
_PART = 256 * 1024  # bytes that an attacker writes at a time
_REPORT_SECONDS = 0.1

app = typer.Typer(add_completion=False)


def head(length: int, *more: str) -> bytes:
    lines = [
        f"POST {_PATH} HTTP/1.1",
        "Host: gatekeeper",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return "\r\n".join([*lines, *more, "", ""]).encode()


_DEEP = b"[" * 200 + b"]" * 200
_DENSE = b'{"a":[1,2,3],"b":4}'  # almost as many lists and objects as are refused
_SMALL = (
    b'{"a":[1,2,3],"b":"' + b"x" * 84 + b'"}'
)  # 64 KiB of it have almost as many values as a review may have that is decoded without waiting for a turn


def nested(size: int, value: bytes = _DEEP) -> bytes:
    """A review of about `size` bytes whose template consists of copies of this value."""
    labels = b'"metadata":{"name":"x"},"apiVersion":"apps/v1","kind":"Deployment"'
    start = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",'
        b'"name":"x","namespace":"default","object":{' + labels + b',"spec":{"template":{"spec":['
    )
    end = b"]}}}}}"
    count = (size - len(start) - len(end)) // (len(value) + 1)
    return start + b",".join([value] * count) + end


@dataclass
class Sent:
    """The totals of the attackers: opened connections, completely sent requests, and bytes."""

    connections: int = 0
    requests: int = 0
    bytes: int = 0


Attack = Callable[[int], Awaitable[None]]
_sent = Sent()


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    opened = await asyncio.open_connection("127.0.0.1", port, ssl=_context())
    _sent.connections += 1
    return opened


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    for start in range(0, len(data), _PART):
        writer.write(data[start : start + _PART])
        await writer.drain()
        _sent.bytes += len(data[start : start + _PART])


def sending(body: bytes) -> Attack:
    """Send this review repeatedly, on one connection until it is closed."""

    async def attack(port: int) -> None:
        reader, writer = await connected(port)
        with contextlib.closing(writer):
            while True:
                await send(writer, head(len(body)) + body)
                _sent.requests += 1
                length = 0
                while line := (await reader.readline()).strip():
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                if not length:
                    return
                await reader.readexactly(length)

    return attack


async def unfinished(port: int) -> None:
    """Three bodies of 8 MiB whose last byte does not come."""
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(_unfinished(port))


async def _unfinished(port: int) -> None:
    reader, writer = await connected(port)
    with contextlib.closing(writer):
        await send(writer, head(8 * _MIB) + b" " * (8 * _MIB - 1))
        await reader.readline()


async def idle(port: int) -> None:
    """25 connections without a handshake: 1,000 of all attackers."""
    writers = []
    try:
        for _ in range(25):
            writers.append(await asyncio.open_connection("127.0.0.1", port))
            _sent.connections += 1
        await writers[-1][0].read(1)
    finally:
        for _, writer in writers:
            writer.close()


async def handshake(port: int) -> None:
    """A connection that is closed after the handshake."""
    _, writer = await connected(port)
    writer.close()


def attacks() -> dict[str, Attack]:
    with tempfile.TemporaryDirectory() as name:
        (large, *_) = (file.read_bytes() for file in write_reviews(Path(name), "3MB", 3_000_000))
    return {
        "8 MiB, wide and 200 deep": sending(nested(8 * _MIB - 1024)),
        "256 KiB, wide and 200 deep": sending(nested(255 * 1024)),
        "32 KiB, wide and 200 deep": sending(nested(31 * 1024)),
        "64 KiB, 4,000 values": sending(nested(64 * 1024 - 64, _SMALL)),
        "3 MB, valid": sending(large),
        "8 MiB, dense": sending(nested(8 * _MIB - 1024, _DENSE)),
        "256 KiB, dense": sending(nested(255 * 1024, _DENSE)),
        "120 unfinished bodies of 8 MiB": unfinished,
        "1,000 idle connections": idle,
        "TLS handshakes": handshake,
    }


@app.command()
def attack(name: str, port: int) -> None:
    """Run the attackers until they are killed. They print their totals. The name `everything`: all kinds at once."""
    kinds = attacks()
    chosen = list(kinds.values()) if name == "everything" else [kinds[name]]

    async def again(act: Attack) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ExceptionGroup):
                await act(port)
            await asyncio.sleep(0.001)

    async def report() -> None:
        while True:
            print(json.dumps(asdict(_sent)), flush=True)
            await asyncio.sleep(_REPORT_SECONDS)

    async def run() -> None:
        await asyncio.gather(report(), *(again(chosen[number % len(chosen)]) for number in range(ATTACKERS)))

    uvloop.run(run())


class Attackers:
    """A process of attackers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.sent = Sent()
        self._process = process
        self._started = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, attack_: str, port: int) -> AsyncIterator["Attackers"]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.hostile", "attack", attack_, str(port)), stdout=asyncio.subprocess.PIPE
        )
        attackers = cls(process)
        try:
            await attackers._started.wait()
            yield attackers
        finally:
            process.kill()
            await process.wait()
            await attackers._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  (it is a pipe)
        async for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # the process was killed while it wrote
                self.sent = Sent(**json.loads(line))
            self._started.set()


@dataclass
class Phase:
    """The figures of legitimate reviews and of the process while it was attacked."""

    attack: str
    connections: int
    """Connections that the attackers opened, per second."""
    requests: int
    """Requests that the attackers sent completely, per second."""
    sent: int
    """MiB that the attackers sent, per second."""
    reviews: int
    failed: int
    p50: float
    p99: float
    worst: float
    p99_without_waiting: float
    """Without the time for which the gatekeeper or the bench waited for a core."""
    memory: int
    """The largest memory in the phase, MiB."""
    core: float
    """The share that the gatekeeper used of the time for which it had a core or needed none."""
    waiting: float
    """The share of the time for which the gatekeeper waited for its core, because of other processes."""


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Seconds of one phase.")] = 15,
    only: Annotated[list[str] | None, typer.Option(help="Only phases whose names contain this text.")] = None,
    output: Annotated[Path, typer.Option(help="The JSON file for the figures.")] = RESULTS,
) -> None:
    """Attack a gatekeeper in each way, and in all ways at once. Exits with 1 if a bound is exceeded."""
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, {_CLIENT_CORE})
    phases, after = uvloop.run(_run(seconds, only or []))
    columns = (
        *("connections/s", "requests/s", "MiB/s", "reviews", "failed", "p50 ms", "p99 ms", "worst ms"),
        *("p99 without waiting", "MiB", "core", "waiting"),
    )
    table = Table("40 attackers send", *columns)
    for each in phases:
        counts = map(str, (each.connections, each.requests, each.sent, each.reviews, each.failed))
        times = (f"{value:,.0f}" for value in (each.p50, each.p99, each.worst, each.p99_without_waiting))
        table.add_row(each.attack, *counts, *times, str(each.memory), f"{each.core:.0%}", f"{each.waiting:.0%}")
    Console(width=160).print(table)
    print(f"memory 5 s after the last attack: {after} MiB; the machine's load before the bench: {load:.1f}")
    output.parent.mkdir(exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    taken = {"taken": now.strftime("%Y-%m-%d"), "cpu": cpu(), "load": round(load, 1)}
    output.write_text(
        json.dumps({**taken, "phases": [asdict(each) for each in phases], "after": after}, indent=2) + "\n"
    )
    if any(each.p99 > MOST_P99 or each.memory > MOST_MEMORY or each.failed for each in phases):
        raise typer.Exit(1)


async def _run(seconds: float, only: list[str]) -> tuple[list[Phase], int]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bodies = [file.read_bytes() for file in write_reviews(directory, "8KB", 8_000)]
        async with _gatekeeper(directory) as server:
            phases = [await _phase(server, "nothing", bodies, seconds)]
            for attack_ in (*attacks(), "everything"):
                if only and not any(text in attack_ for text in only):
                    continue
                async with Attackers.running(attack_, server.port) as attackers:
                    await asyncio.sleep(2)
                    phases.append(await _phase(server, attack_, bodies, seconds, attackers))
                await asyncio.sleep(1)
            await asyncio.sleep(5)
            return phases, server.resident


async def _phase(
    server: Server, attack_: str, bodies: list[bytes], seconds: float, attackers: Attackers | None = None
) -> Phase:
    latencies: list[float] = []
    without_waiting: list[float] = []
    own = Path("/proc/self/schedstat")
    memory = failed = 0
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_TIMEOUT)) as client,
        asyncio.TaskGroup() as group,
    ):

        async def one(number: int, due: float) -> None:
            nonlocal failed
            waited = server.waited, waited_for_a_core(own)
            try:
                async with client.post(
                    f"https://127.0.0.1:{server.port}{_PATH}",
                    data=bodies[number % len(bodies)],
                    headers={"Content-Type": "application/json"},
                    ssl=False,
                ) as answer:
                    await answer.read()
                    failed += answer.status != 200
            except (aiohttp.ClientError, TimeoutError):
                failed += 1
            latency = time.perf_counter() - due
            waiting = max(server.waited - waited[0], waited_for_a_core(own) - waited[1])
            latencies.append(latency * 1000)
            without_waiting.append(max(0.0, latency - waiting) * 1000)

        before = attackers.sent if attackers else Sent()
        began, used, waited = time.perf_counter(), server.cpu, server.waited
        for number in range(int(seconds * _RATE)):
            due = began + number / _RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(number, due))
            memory = max(memory, server.resident)
        took = time.perf_counter() - began
        waiting = server.waited - waited
        core = (server.cpu - used) / (took - waiting)
        after = attackers.sent if attackers else Sent()
    latencies.sort()
    without_waiting.sort()
    p50, p99 = (round(latencies[int(len(latencies) * share)], 1) for share in (0.5, 0.99))
    connections = round((after.connections - before.connections) / took)
    requests = round((after.requests - before.requests) / took)
    sent = round((after.bytes - before.bytes) / took / _MIB)
    return Phase(
        attack=attack_,
        connections=connections,
        requests=requests,
        sent=sent,
        reviews=len(latencies),
        failed=failed,
        p50=p50,
        p99=p99,
        worst=round(latencies[-1], 1),
        p99_without_waiting=round(without_waiting[int(len(latencies) * 0.99)], 1),
        memory=memory,
        core=round(core, 2),
        waiting=round(waiting / took, 2),
    )


@contextlib.asynccontextmanager
async def _gatekeeper(directory: Path) -> AsyncIterator[Server]:
    day = datetime.timedelta(days=1)
    pair = Authority.create("bench", lifetime=day).issue("bench", hosts=["127.0.0.1"], lifetime=day)
    certificate, key, kubeconfig, log = (directory / name for name in ("tls.crt", "tls.key", "kubeconfig", "log"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    async with kubernetes(kubeconfig):
        (port,) = free_ports(1)
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gatekeeper", "--kubeconfig", str(kubeconfig), "--host", "127.0.0.1"),
                *("--port", str(port), "--metrics-port", "0", "--shutdown-delay", "0"),
                *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
                stderr=file,
                preexec_fn=lambda: os.sched_setaffinity(0, {_SERVER_CORE}),
            )
            server = Server(process, port)
            try:
                await answering(server, log)
                yield server
            finally:
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    process.kill()
                await process.wait()


if __name__ == "__main__":
    app()
