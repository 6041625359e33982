"""Do releases fail while one of three gatekeepers hangs?

Measured: connections to the gatekeeper are accepted, but get no response. In the first phase it is still an endpoint of
the Service, until its readiness probe fails; then the liveness probe kills it; then it restarts. 25 releases a second
are sent at fixed times. The API server waits for responses as long as the chart sets.

How to read it: releases may fail only in the first phase, and only those whose call went to the gatekeeper that hangs.
"""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.availability.answering import Kubeconfig, Rate, answered
from bench.availability.gatekeepers import Gatekeepers, Pod
from bench.availability.installation import installed
from bench.availability.kubelet import GRACE_SECONDS, LIVENESS, READINESS, Probe
from bench.availability.phases import Result, through_phases
from bench.availability.service import NEVER
from bench.harness.answer import Answer
from bench.harness.waiting import until

HUNG, OUT, RESTARTED = "hung", "taken out", "restarted"

_BEFORE_SECONDS = 1.0  # load before the gatekeeper hangs, so that connections to it are open


@dataclass(frozen=True)
class Plan:
    """Seconds, and releases per second."""

    after: float = 30.0
    """How long the load continues after the gatekeeper is killed."""
    rate: float = 25.0
    readiness: Probe = READINESS
    liveness: Probe = LIVENESS
    grace: float = GRACE_SECONDS


async def ask(
    kubeconfig: Kubeconfig = None,
    after: Annotated[float, typer.Option(min=1, help="Seconds of load after the gatekeeper is killed.")] = 30,
    rate: Rate = 25,
) -> Answer:
    title = f"{rate:g} releases per second while one gatekeeper hangs"
    return await answered(title, kubeconfig, measure, Plan(after=after, rate=rate))


async def measure(
    kubeconfig: Path, directory: Path, plan: Plan, report: Callable[[str], None] = lambda _: None
) -> Result:
    """Measure three phases: until the readiness probe removes the gatekeeper from the Service; until the liveness probe
    kills it; while it restarts. The API server waits for responses as long as the chart sets."""
    async with installed(kubeconfig, directory) as installation:
        gatekeepers = Gatekeepers(installation, directory, 0, plan.readiness)
        phases = {name: functools.partial(happen, gatekeepers, plan) for name, happen in _PHASES.items()}
        return await through_phases(gatekeepers, plan.rate, phases, kills=1, report=report, webhook_seconds=None)


async def _hang(gatekeepers: Gatekeepers, _plan: Plan) -> str:
    """Stop the gatekeeper that got the last request: connections to it are in use."""
    await asyncio.sleep(_BEFORE_SECONDS)
    pod = max(gatekeepers.pods, key=lambda pod: pod.endpoint.asked_at)
    pod.hang()
    await until(lambda: not pod.endpoint.ready, "the gatekeeper not to be ready")
    return f"not ready after {_hung(pod):.1f} s"


async def _wait_for_liveness(gatekeepers: Gatekeepers, plan: Plan) -> str:
    """Wait for the longest possible time: the gatekeeper hung right after a probe, and does not react to SIGTERM."""
    pod = _stuck(gatekeepers)
    await asyncio.sleep(plan.liveness.longest + plan.grace - _hung(pod))
    return f"killed after {_hung(pod):.1f} s"


async def _restart(gatekeepers: Gatekeepers, plan: Plan) -> str:
    await asyncio.gather(_stuck(gatekeepers).kill(), asyncio.sleep(plan.after))
    return ""


def _stuck(gatekeepers: Gatekeepers) -> Pod:
    (pod,) = [pod for pod in gatekeepers.pods if pod.endpoint.hung_at < NEVER]
    return pod


def _hung(pod: Pod) -> float:
    """Seconds for which the gatekeeper has hung."""
    return asyncio.get_running_loop().time() - pod.endpoint.hung_at


_PHASES = {HUNG: _hang, OUT: _wait_for_liveness, RESTARTED: _restart}
