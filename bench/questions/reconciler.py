"""How many API writes does a verified pod cause, and how soon after its observation does it get its verdict?

Measured: many Deployments are created at the same time on the sandbox with its simulated nodes, which is one process.
The reconciler runs in this process, which also creates the Deployments and reads the reconciler's caches. The
Deployments have their version labels from the start, because no gatekeeper runs. A run ends when the last release is
settled.

How to read it: the writes of a pod are those to the pod and its ChangePod; all other writes are those of a release,
Events included. They do not depend on the machine; the times do, and the sandbox shares its cores.
"""

import asyncio
import math
import time
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from bench.harness.answer import Answer, exceeded, fields, quantiles
from bench.harness.deployments import IMAGE, deployment, versions
from bench.harness.sandbox import NAMESPACE, govern, reconciling, sandbox, writes
from bench.harness.verdicts import Verdicts
from bench.harness.waiting import paced
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS, EVENTS
from reconciler import thresholds
from reconciler.cluster.release import Release
from reconciler.manager import COMPONENT, Manager

MAX_OF_A_POD, MAX_OF_A_RELEASE = 4.0, 6.0
_OF_PODS = {"Pod", "ChangePod"}
_MAKERS = 20  # Deployments that are created at the same time


@dataclass(frozen=True)
class Result:
    """Times are in seconds."""

    deployments: int
    seconds: float
    """From the creation of the first Deployment until the last release was settled."""
    writes: dict[str, int]
    writes_of_a_pod: float
    """To objects of its own: the pod and its ChangePod."""
    writes_of_a_release: float
    """To other objects."""
    pods: int
    up_to_verdict_median: float
    up_to_verdict_p99: float


async def ask(
    deployments: Annotated[int, typer.Option(min=1)] = 1000, replicas: Annotated[int, typer.Option(min=1)] = 5
) -> Answer:
    result = await _measure(deployments, replicas)
    rows = {
        **result.writes,
        "writes of a pod": f"{result.writes_of_a_pod:.2f} (at most {MAX_OF_A_POD:g})",
        "writes of a release": f"{result.writes_of_a_release:.2f} (at most {MAX_OF_A_RELEASE:g})",
        "up to verdict, median": f"{result.up_to_verdict_median:.3f} s",
        "up to verdict, 99 %": f"{result.up_to_verdict_p99:.3f} s",
        "total time": f"{result.seconds:.1f} s",
    }
    wrong = exceeded("writes of a pod", result.writes_of_a_pod, MAX_OF_A_POD)
    wrong += exceeded("writes of a release", result.writes_of_a_release, MAX_OF_A_RELEASE)
    table = fields(f"{deployments} Deployments of {replicas} pods", rows)
    return Answer(asdict(result), [table], wrong=wrong)


async def _measure(deployments: int, replicas: int) -> Result:
    async with sandbox() as (kubeconfig, _), await Client.connect(str(kubeconfig)) as client:
        await govern(client, NAMESPACE)
        # a release is settled this long after its success; that is the last write about it
        async with reconciling(client, start_timeout=120) as manager:
            verdicts = Verdicts(manager.caches.pods, manager.caches.batches)
            settled = _settled(manager, deployments)
            began = time.monotonic()
            await create_all(client, deployments, replicas)
            await settled.wait()
            seconds = time.monotonic() - began
            events: list[dict[str, Any]] = (await client.list(EVENTS, NAMESPACE)).items
        written = writes(manager)
    written["Event"] = sum(event.get("reportingComponent") == COMPONENT for event in events)
    of_pods = sum(count for name, count in written.items() if name.split()[-1] in _OF_PODS)
    pods = len(verdicts.ready)
    return Result(
        deployments,
        round(seconds, 1),
        dict(written),
        round(of_pods / pods, 2),
        round((written.total() - of_pods) / deployments, 2),
        *quantiles(each - thresholds.OBSERVE_SECONDS for each in verdicts.waits()),
    )


def _settled(manager: Manager, count: int) -> asyncio.Event:
    """Is set when this number of releases are settled."""
    settled: set[str] = set()
    all_settled = asyncio.Event()

    def follow(_: Release | None, new: Release | None) -> None:
        found = find_condition(new.status.conditions, ConditionType.SETTLED) if new is not None else None
        if new is not None and found is not None and found.is_true:
            settled.add(new.metadata.name)
            if len(settled) == count:
                all_settled.set()

    manager.caches.releases.add_handler(follow)
    return all_settled


async def create_all(client: Client, count: int, replicas: int, rate: float = math.inf) -> None:
    """Create Deployments with their versions, a few at a time and at most `rate` in a second."""
    version = await versions(client)
    at_once = asyncio.Semaphore(_MAKERS)

    async def create(name: str) -> None:
        async with at_once:
            made = deployment(name, version=version(name, IMAGE), replicas=replicas)
            await client.create(DEPLOYMENTS, made, NAMESPACE)

    async with asyncio.TaskGroup() as group:
        async for number in paced(rate, range(count)):
            group.create_task(create(f"app-{number}"))
