"""Are legitimate reviews answered in time while hostile callers send requests, and does the gatekeeper's memory hold?

Measured: a gatekeeper runs on one core. 40 attackers without credentials (`bench.harness.attackers`) run in another
process on the other core. In each phase, each attacker repeats one attack without a pause; the last phase has all
attacks. Meanwhile reviews of 8 KB are sent at fixed times on persistent connections, as API servers do. Latencies count
from these times. A review fails if it has no answer of 200 within the chart's timeout.

How to read it: the reviews are sent from the attackers' core, and other work on the machine delays all of them. So the
table has each p99 twice: as measured, and without the time for which the gatekeeper, or the sender, was ready to run
but had no core (`/proc/PID/schedstat`; the longer of the two). The column `core` is the share that the gatekeeper used
of the time for which it had a core or needed none: near 100 %, the attackers keep it busy.
"""

import asyncio
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import aiohttp
import typer
from rich.table import Table

from bench.harness.answer import Answer, exceeded, quantile
from bench.harness.attackers import EVERYTHING, MIB, PATH, Attackers, Sent, attacks
from bench.harness.proc import waited
from bench.harness.reviews import write_reviews
from bench.harness.servers import LOOPBACK, Server
from bench.harness.stub_api import gatekeeper_on_a_stub
from bench.harness.wrk import CLIENT_CORE, SERVER_CORE

MOST_P99 = 500.0  # milliseconds
MOST_MEMORY = 512  # MiB: the chart's limit
_RATE = 50  # legitimate reviews a second
_TIMEOUT = 2.0  # seconds; the chart's for the mutating webhook


@dataclass(frozen=True)
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

    @property
    def wrong(self) -> list[str]:
        failed = [f"{self.attack}: {self.failed} of {self.reviews} reviews failed"] if self.failed else []
        slow = exceeded(f"{self.attack}: p99", self.p99, MOST_P99, " ms")
        return [*failed, *slow, *exceeded(f"{self.attack}: memory", self.memory, MOST_MEMORY, " MiB")]


async def ask(
    seconds: Annotated[float, typer.Option(help="Seconds of one phase.")] = 15,
    only: Annotated[list[str] | None, typer.Option(help="Only phases whose names contain this text.")] = None,
) -> Answer:
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, {CLIENT_CORE})
    phases, after = await _phases(seconds, only or [])
    columns = (
        *("connections/s", "requests/s", "MiB/s", "reviews", "failed", "p50 ms", "p99 ms", "worst ms"),
        *("p99 without waiting", "MiB", "core", "waiting"),
    )
    table = Table("40 attackers send", *columns)
    for each in phases:
        counts = map(str, (each.connections, each.requests, each.sent, each.reviews, each.failed))
        times = (f"{value:,.0f}" for value in (each.p50, each.p99, each.worst, each.p99_without_waiting))
        table.add_row(each.attack, *counts, *times, str(each.memory), f"{each.core:.0%}", f"{each.waiting:.0%}")
    said = f"memory 5 s after the last attack: {after} MiB; the machine's load before the bench: {load:.1f}"
    figures = {"load": round(load, 1), "phases": [asdict(each) for each in phases], "after": after}
    return Answer(figures, [table], [said], [line for each in phases for line in each.wrong])


async def _phases(seconds: float, only: list[str]) -> tuple[list[Phase], int]:
    """The phases, and the memory after them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bodies = [file.read_bytes() for file in write_reviews(directory, "8KB", 8_000)]
        async with gatekeeper_on_a_stub(directory, SERVER_CORE) as server:
            phases = [await _phase(server, "nothing", bodies, seconds)]
            for attack in (*attacks(), EVERYTHING):
                if only and not any(text in attack for text in only):
                    continue
                async with Attackers.running(attack, server.port) as attackers:
                    await asyncio.sleep(2)
                    phases.append(await _phase(server, attack, bodies, seconds, attackers))
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
        before = self._server.waited, waited(os.getpid())
        try:
            async with self._client.post(
                f"https://{LOOPBACK}:{self._server.port}{PATH}",
                data=self._bodies[number % len(self._bodies)],
                headers={"Content-Type": "application/json"},
                ssl=False,
            ) as answer:
                await answer.read()
                self.failed += answer.status != 200
        except (aiohttp.ClientError, TimeoutError):
            self.failed += 1
        latency = time.perf_counter() - due
        waiting = max(self._server.waited - before[0], waited(os.getpid()) - before[1])
        self.latencies.append(latency * 1000)
        self.without_waiting.append(max(0.0, latency - waiting) * 1000)


async def _phase(
    server: Server, attack: str, bodies: list[bytes], seconds: float, attackers: Attackers | None = None
) -> Phase:
    memory = 0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_TIMEOUT)) as client, asyncio.TaskGroup() as group:
        reviews = Reviews(server, bodies, client)
        before = attackers.sent if attackers else Sent()
        began, used, waiting = time.perf_counter(), server.cpu, server.waited
        for number in range(int(seconds * _RATE)):
            due = began + number / _RATE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(reviews.send(number, due))
            memory = max(memory, server.resident)
        took = time.perf_counter() - began
        waiting = server.waited - waiting
        core = (server.cpu - used) / (took - waiting)
        after = attackers.sent if attackers else Sent()
    return Phase(
        attack=attack,
        connections=round((after.connections - before.connections) / took),
        requests=round((after.requests - before.requests) / took),
        sent=round((after.bytes - before.bytes) / took / MIB),
        reviews=len(reviews.latencies),
        failed=reviews.failed,
        p50=round(quantile(reviews.latencies, 0.5), 1),
        p99=round(quantile(reviews.latencies, 0.99), 1),
        worst=round(max(reviews.latencies), 1),
        p99_without_waiting=round(quantile(reviews.without_waiting, 0.99), 1),
        memory=memory,
        core=round(core, 2),
        waiting=round(waiting / took, 2),
    )
