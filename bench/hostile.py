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
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import aiohttp
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from bench.attackers import EVERYTHING, MIB, PATH, Attackers, Sent, attacks
from bench.processes import Server, answering, cpu, kubernetes, waited_for_a_core
from bench.reviews import write_reviews
from kube_base.pki import Authority
from kube_base.processes import free_ports

RESULTS = Path(__file__).parent / "results" / "hostile.json"
MOST_P99 = 500.0  # milliseconds
MOST_MEMORY = 512  # MiB: the chart's limit
_RATE = 50  # legitimate reviews a second
_TIMEOUT = 2.0  # seconds; the chart's for the mutating webhook
_SERVER_CORE, _CLIENT_CORE = 0, 1
_OWN = Path("/proc/self/schedstat")


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
            for attack_ in (*attacks(), EVERYTHING):
                if only and not any(text in attack_ for text in only):
                    continue
                async with Attackers.running(attack_, server.port) as attackers:
                    await asyncio.sleep(2)
                    phases.append(await _phase(server, attack_, bodies, seconds, attackers))
                await asyncio.sleep(1)
            await asyncio.sleep(5)
            return phases, server.resident


class Reviews:
    """Legitimate reviews that the bench sends, and their latencies in milliseconds."""

    def __init__(self, server: Server, bodies: list[bytes], client: aiohttp.ClientSession) -> None:
        self.failed = 0
        self.latencies: list[float] = []
        self.without_waiting: list[float] = []
        self._server, self._bodies, self._client = server, bodies, client

    async def send(self, number: int, due: float) -> None:
        """Send a review that is due at this time (`perf_counter`)."""
        waited = self._server.waited, waited_for_a_core(_OWN)
        try:
            async with self._client.post(
                f"https://127.0.0.1:{self._server.port}{PATH}",
                data=self._bodies[number % len(self._bodies)],
                headers={"Content-Type": "application/json"},
                ssl=False,
            ) as answer:
                await answer.read()
                self.failed += answer.status != 200
        except (aiohttp.ClientError, TimeoutError):
            self.failed += 1
        latency = time.perf_counter() - due
        waiting = max(self._server.waited - waited[0], waited_for_a_core(_OWN) - waited[1])
        self.latencies.append(latency * 1000)
        self.without_waiting.append(max(0.0, latency - waiting) * 1000)


async def _phase(
    server: Server, attack_: str, bodies: list[bytes], seconds: float, attackers: Attackers | None = None
) -> Phase:
    memory = 0
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_TIMEOUT)) as client,
        asyncio.TaskGroup() as group,
    ):
        reviews = Reviews(server, bodies, client)
        before = attackers.sent if attackers else Sent()
        began, used, waited = time.perf_counter(), server.cpu, server.waited
        for number in range(int(seconds * _RATE)):
            due = began + number / _RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(reviews.send(number, due))
            memory = max(memory, server.resident)
        took = time.perf_counter() - began
        waiting = server.waited - waited
        core = (server.cpu - used) / (took - waiting)
        after = attackers.sent if attackers else Sent()
    return Phase(
        attack=attack_,
        connections=round((after.connections - before.connections) / took),
        requests=round((after.requests - before.requests) / took),
        sent=round((after.bytes - before.bytes) / took / MIB),
        reviews=len(reviews.latencies),
        failed=reviews.failed,
        p50=_percentile(reviews.latencies, 0.5),
        p99=_percentile(reviews.latencies, 0.99),
        worst=round(max(reviews.latencies), 1),
        p99_without_waiting=_percentile(reviews.without_waiting, 0.99),
        memory=memory,
        core=round(core, 2),
        waiting=round(waiting / took, 2),
    )


def _percentile(values: list[float], share: float) -> float:
    return round(sorted(values)[int(len(values) * share)], 1)


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
    typer.run(main)
