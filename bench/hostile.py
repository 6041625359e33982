"""What hostile callers do to legitimate reviews, and to the gatekeeper's memory.

    python -m bench.hostile

A gatekeeper serves on one core. 40 attackers in another process, without credentials, do one thing each phase, again
as soon as it ends. Meanwhile reviews of 4 KB are sent at fixed times on kept connections, as API servers do; latencies
count from these times, and a review fails that has no answer of 200 within the chart's timeout.
"""

import asyncio
import contextlib
import datetime
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
from bench.processes import Server, answering, cpu, free_ports, kubernetes
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

app = typer.Typer(add_completion=False)


def head(length: int, *more: str) -> bytes:
    lines = [f"POST {_PATH} HTTP/1.1", "Host: gate", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


_DEEP = b"[" * 200 + b"]" * 200
_DENSE = b'{"a":[1,2,3],"b":4}'  # hardly less than what no Kubernetes object has


def nested(size: int, value: bytes = _DEEP) -> bytes:
    """A review of about that many bytes whose template is full of this value."""
    labels = b'"metadata":{"name":"x"},"apiVersion":"apps/v1","kind":"Deployment"'
    start = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",'
        b'"name":"x","namespace":"default","object":{' + labels + b',"spec":{"template":{"spec":['
    )
    end = b"]}}}}}"
    count = (size - len(start) - len(end)) // (len(value) + 1)
    return start + b",".join([value] * count) + end


Attack = Callable[[int], Awaitable[None]]


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


def sending(body: bytes) -> Attack:
    """Send this review again and again, on one connection for as long as it lives."""

    async def attack(port: int) -> None:
        reader, writer = await connected(port)
        with contextlib.closing(writer):
            while True:
                writer.write(head(len(body)) + body)
                await writer.drain()
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
        writer.write(head(8 * _MIB) + b" " * (8 * _MIB - 1))
        await writer.drain()
        await reader.readline()


async def idle(port: int) -> None:
    """25 connections without a handshake: 1,000 of all attackers."""
    writers = [(await asyncio.open_connection("127.0.0.1", port)) for _ in range(25)]
    try:
        await writers[-1][0].read(1)
    finally:
        for _, writer in writers:
            writer.close()


def attacks() -> dict[str, Attack]:
    return {
        "8 MiB, wide and 200 deep": sending(nested(8 * _MIB - 1024)),
        "256 KiB, wide and 200 deep": sending(nested(255 * 1024)),
        "32 KiB, wide and 200 deep": sending(nested(31 * 1024)),
        "8 MiB, dense": sending(nested(8 * _MIB - 1024, _DENSE)),
        "256 KiB, dense": sending(nested(255 * 1024, _DENSE)),
        "120 unfinished bodies of 8 MiB": unfinished,
        "1,000 idle connections": idle,
    }


@app.command()
def attack(name: str, port: int) -> None:
    """Be the attackers, until killed. `everything`: eight of each kind."""
    kinds = attacks()
    chosen = list(kinds.values()) if name == "everything" else [kinds[name]]

    async def again(act: Attack) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ExceptionGroup):
                await act(port)
            await asyncio.sleep(0.001)

    async def run() -> None:
        await asyncio.gather(*(again(chosen[number % len(chosen)]) for number in range(ATTACKERS)))

    print("attacking", flush=True)
    uvloop.run(run())


@dataclass
class Phase:
    """What legitimate callers and the process saw while it was attacked."""

    attack: str
    reviews: int
    failed: int
    p50: float
    p99: float
    worst: float
    memory: int
    """MiB, the most in the phase."""
    core: float
    """The share of its core that the gatekeeper used. Low beside long latencies, others used the core."""


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Seconds of one phase.")] = 15,
    only: Annotated[list[str] | None, typer.Option(help="Only phases whose names contain this text.")] = None,
    output: Annotated[Path, typer.Option(help="Where the figures go as JSON.")] = RESULTS,
) -> None:
    """Attack a gatekeeper in each way, and in all ways at once. Exit code 1 where a bound does not hold."""
    phases, after = uvloop.run(_run(seconds, only or []))
    table = Table("40 attackers send", "reviews", "failed", "p50 ms", "p99 ms", "worst ms", "MiB", "core")
    for each in phases:
        times = (f"{value:,.0f}" for value in (each.p50, each.p99, each.worst))
        table.add_row(each.attack, str(each.reviews), str(each.failed), *times, str(each.memory), f"{each.core:.0%}")
    Console().print(table)
    print(f"memory 5 s after the last attack: {after} MiB")
    output.parent.mkdir(exist_ok=True)
    taken = {"taken": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"), "cpu": cpu()}
    output.write_text(
        json.dumps({**taken, "phases": [asdict(each) for each in phases], "after": after}, indent=2) + "\n"
    )
    if any(each.p99 > MOST_P99 or each.memory > MOST_MEMORY or each.failed for each in phases):
        raise typer.Exit(1)


async def _run(seconds: float, only: list[str]) -> tuple[list[Phase], int]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bodies = [file.read_bytes() for file in write_reviews(directory, "4KB", 4_000)]
        async with _gatekeeper(directory) as server:
            phases = [await _phase(server, "nothing", bodies, seconds)]
            for attack_ in (*attacks(), "everything"):
                if only and not any(text in attack_ for text in only):
                    continue
                command = (sys.executable, "-m", "bench.hostile", "attack", attack_, str(server.port))
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdout=asyncio.subprocess.PIPE,
                    preexec_fn=lambda: os.sched_setaffinity(0, {_CLIENT_CORE}),
                )
                try:
                    assert process.stdout is not None  # noqa: S101  (it is a pipe)
                    await process.stdout.readline()
                    await asyncio.sleep(2)
                    phases.append(await _phase(server, attack_, bodies, seconds))
                finally:
                    process.kill()
                    await process.wait()
                await asyncio.sleep(1)
            await asyncio.sleep(5)
            return phases, server.resident


async def _phase(server: Server, attack_: str, bodies: list[bytes], seconds: float) -> Phase:
    latencies: list[float] = []
    memory = failed = 0
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_TIMEOUT)) as client,
        asyncio.TaskGroup() as group,
    ):

        async def one(number: int, due: float) -> None:
            nonlocal failed
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
            latencies.append((time.perf_counter() - due) * 1000)

        began, used = time.perf_counter(), server.cpu
        for number in range(int(seconds * _RATE)):
            due = began + number / _RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(number, due))
            memory = max(memory, server.resident)
        core = (server.cpu - used) / (time.perf_counter() - began)
    latencies.sort()
    at = [latencies[int(len(latencies) * share)] for share in (0.5, 0.99)]
    p50, p99, worst = (round(each, 1) for each in (*at, latencies[-1]))
    return Phase(attack_, len(latencies), failed, p50, p99, worst, memory, round(core, 2))


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
                process.kill()
                await process.wait()


if __name__ == "__main__":
    app()
