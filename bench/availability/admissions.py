"""Constant releases through three gatekeepers while these are rolled, killed, and given new certificates."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bench.availability.gate import Gate
from bench.availability.installation import installed
from bench.availability.load import SLIPPED, Load, Sent
from bench.availability.waiting import until

KILLED = "killed"


@dataclass(frozen=True)
class Plan:
    """Seconds, and releases per second. A phase lasts until what happens in it is over, and so long at least."""

    phase: float = 30.0
    rate: float = 25.0
    shutdown_delay: float = 10.0
    min_ready: float = 5.0
    """Between a new pod's readiness and the end of an old one."""


@dataclass(frozen=True)
class Phase:
    """What was measured in a phase; latencies are milliseconds."""

    name: str
    seconds: float
    requests: int
    failures: tuple[str, ...]
    p50: float
    p99: float
    worst: float
    under_way: int
    """Failures of releases that were under way when a gatekeeper was killed."""
    cut: int
    """Connections that gatekeepers left with a request or handshake unanswered."""
    unnoticed: int
    """Connections that were sent to a dead gatekeeper before the Service knew."""
    happened: str

    @property
    def unexpected(self) -> tuple[str, ...]:
        """What went wrong, unless it was because of a kill alone."""
        slipped = tuple(failure for failure in self.failures if failure.startswith(SLIPPED))
        others = len(self.failures) - self.under_way
        excused = self.cut + self.unnoticed if self.name == KILLED else 0
        return slipped or (self.failures if others > excused else ())


async def measure(
    kubeconfig: Path, directory: Path, plan: Plan, told: Callable[[str], None] = lambda _: None
) -> list[Phase]:
    """Measure the phases, one after the other; `told` hears what begins."""
    async with installed(kubeconfig, directory) as installation:
        gate = Gate(installation, directory, plan.shutdown_delay)
        async with gate.running(), Load.connected(installation.admin, installation.name, plan.rate) as load:
            await load.prepare()
            phases = []
            async with _sending(load):
                for name, happen in _PHASES.items():
                    told(f"{name} …")
                    phases.append(await _phase(name, gate, load, plan, happen))
            return phases


@contextlib.asynccontextmanager
async def _sending(load: Load) -> AsyncIterator[None]:
    sending = asyncio.create_task(load.run())
    try:
        yield
        if sending.done():
            sending.result()
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _phase(
    name: str, gate: Gate, load: Load, plan: Plan, happen: Callable[[Gate, Plan], Awaitable[str]]
) -> Phase:
    loop = asyncio.get_running_loop()
    service = gate.service
    began, cut, refused = loop.time(), service.cut, service.refused
    happened, _ = await asyncio.gather(happen(gate, plan), asyncio.sleep(plan.phase))
    ended = loop.time()
    await load.settled(ended)
    sent = [each for each in load.sent if began <= each.due < ended]
    latencies = sorted(each.latency * 1000 for each in sent)
    return Phase(
        name=name,
        seconds=round(ended - began, 1),
        requests=len(sent),
        failures=tuple(each.failure for each in sent if each.failure),
        p50=round(_quantile(latencies, 0.5), 1),
        p99=round(_quantile(latencies, 0.99), 1),
        worst=round(latencies[-1], 1),
        under_way=sum(_under_way(each, gate.killed_at) for each in sent if each.failure),
        cut=service.cut - cut,
        unnoticed=service.refused - refused,
        happened=happened,
    )


def _under_way(sent: Sent, moments: list[float]) -> bool:
    return any(sent.due <= moment <= sent.due + sent.latency for moment in moments)


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[math.ceil(len(ordered) * share) - 1]


async def _nothing(_gate: Gate, _plan: Plan) -> str:
    return ""


async def _roll(gate: Gate, plan: Plan) -> str:
    old = len(gate.pods)
    await gate.roll(plan.min_ready)
    return f"{old} pods replaced"


async def _kill(gate: Gate, plan: Plan) -> str:
    """One after the other, each being up again, and known to be, before the next one."""
    for pod in gate.pods:
        await asyncio.sleep(plan.phase / 10)
        await gate.kill(pod)
    return f"{len(gate.pods)} gatekeepers killed"


async def _rotate(gate: Gate, _plan: Plan) -> str:
    """Renew the serving certificate, then its CA, until all gatekeepers were handed the new one."""
    seen = _certificates(gate)
    await gate.rotate()
    await until(lambda: not _certificates(gate) & seen, "the renewed certificate")
    seen |= _certificates(gate)
    await gate.rotate("--ca")
    await until(lambda: not _certificates(gate) & seen, "the new CA's certificate")
    return "certificate and CA replaced"


def _certificates(gate: Gate) -> set[bytes]:
    return {pod.certificate.read_bytes() for pod in gate.pods}


_PHASES = {"undisturbed": _nothing, "rolled": _roll, KILLED: _kill, "rotated": _rotate}
