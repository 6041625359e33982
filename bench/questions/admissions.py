"""Do releases fail while the gatekeepers are replaced, killed, and get new certificates?

Measured: three gatekeepers, each with its certgen, behind one address that forwards connections as a Service does. 25
releases a second, creates and updates in turn, are sent at fixed times, and latencies count from these times.
Certificates have a lifetime of one minute. In the phases, nothing happens; all three are replaced one after the other;
each is killed (SIGKILL); the certificate and then its CA are renewed.

How to read it: the only accepted failure is a lost connection to a killed gatekeeper, as `bench.availability.losses`
explains it. A release that is stored with another version than its template's counts as failed.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.availability.answering import Kubeconfig, Rate, answered
from bench.availability.gatekeepers import REPLICAS, Gatekeepers
from bench.availability.installation import installed
from bench.availability.kubelet import READINESS, Probe
from bench.availability.phases import Result, through_phases
from bench.harness.answer import Answer
from bench.harness.waiting import until

KILLED = "killed"

Happening = Callable[[Gatekeepers, "Plan"], Awaitable[str]]
"""Returns what has happened."""


@dataclass(frozen=True)
class Plan:
    """Seconds, and releases per second. A phase lasts until its action is over, but at least `phase` seconds."""

    phase: float = 30.0
    rate: float = 25.0
    shutdown_delay: float = 10.0
    min_ready: float = 5.0
    """Time between the readiness of a new pod and the deletion of an old one."""
    readiness: Probe = READINESS


async def ask(
    kubeconfig: Kubeconfig = None,
    phase: Annotated[float, typer.Option(min=1, help="Minimum seconds of each phase.")] = 30,
    rate: Rate = 25,
) -> Answer:
    title = f"{rate:g} releases per second through three gatekeepers"
    return await answered(title, kubeconfig, measure, Plan(phase=phase, rate=rate))


async def measure(
    kubeconfig: Path, directory: Path, plan: Plan, report: Callable[[str], None] = lambda _: None
) -> Result:
    """Measure the phases, one after the other. `report` is called with the name of each phase."""
    async with installed(kubeconfig, directory) as installation:
        gatekeepers = Gatekeepers(installation, directory, plan.shutdown_delay, plan.readiness)
        phases = {
            name: functools.partial(_lasting, plan.phase, happen, gatekeepers, plan) for name, happen in _PHASES.items()
        }
        return await through_phases(gatekeepers, plan.rate, phases, kills=REPLICAS, report=report)


async def _lasting(seconds: float, happen: Happening, gatekeepers: Gatekeepers, plan: Plan) -> str:
    happened, _ = await asyncio.gather(happen(gatekeepers, plan), asyncio.sleep(seconds))
    return happened


async def _nothing(_gatekeepers: Gatekeepers, _plan: Plan) -> str:
    return ""


async def _roll(gatekeepers: Gatekeepers, plan: Plan) -> str:
    old = len(gatekeepers.pods)
    await gatekeepers.roll(plan.min_ready)
    return f"{old} pods replaced"


async def _kill(gatekeepers: Gatekeepers, plan: Plan) -> str:
    """Kill one gatekeeper after the other. Each is ready again before the next one is killed."""
    for pod in gatekeepers.pods:
        await asyncio.sleep(plan.phase / 10)
        await pod.kill()
    return f"{len(gatekeepers.pods)} gatekeepers killed"


async def _rotate(gatekeepers: Gatekeepers, _plan: Plan) -> str:
    """Renew the serving certificate, then its CA. Each time, wait until all gatekeepers have the new certificate."""
    seen = _certificates(gatekeepers)
    await gatekeepers.rotate()
    await until(lambda: not _certificates(gatekeepers) & seen, "the renewed certificate")
    seen |= _certificates(gatekeepers)
    await gatekeepers.rotate("--ca")
    await until(lambda: not _certificates(gatekeepers) & seen, "the new CA's certificate")
    return "certificate and CA replaced"


def _certificates(gatekeepers: Gatekeepers) -> set[bytes]:
    return {pod.certificate.read_bytes() for pod in gatekeepers.pods}


_PHASES: dict[str, Happening] = {"undisturbed": _nothing, "rolled": _roll, KILLED: _kill, "rotated": _rotate}
