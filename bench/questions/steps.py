"""What do releases in steps write, do they ever exceed a step, how soon does the next step follow, and how much longer
does a request take?

Measured: many Deployments are released at the same time in three steps, on the sandbox with its simulated nodes, a
gatekeeper and a reconciler. The reconciler runs in this process, which follows its caches.

How to read it: the writes and the overshoot do not depend on the machine. The writes of a pod are those to the pod and
its ChangePod; all other writes are those of a release, without Events and leases. `overshoot` is the number of pods
that versions had beyond their steps. The times to the next step begin at the end of the soak, of which the status has
whole seconds. They end when the workload lets more pods have the version, which is the reconciler's part, and at the
first pod of the next step, which the controllers and nodes create; the API and all processes share the cores. At last,
a template is patched in turns, as a dry run, of a held Deployment, of one that is governed without steps, and of one
that is not governed: the medians are in milliseconds.
"""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from altershield.api.change_workload import WorkloadState
from altershield.api.resources import DEFENSE_POLICIES
from altershield.api.rollout import Phase
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from bench.availability.answering import Kubeconfig, answered
from bench.availability.gatekeepers import Gatekeepers
from bench.availability.installation import Installation, installed
from bench.harness.answer import Answer, exceeded, quantiles
from bench.harness.deployments import create, release
from bench.harness.sandbox import reconciling, writes
from bench.harness.waiting import until
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS
from reconciler.cluster.release import Release
from reconciler.manager import Manager

_MAX_WRITES = 4.0
_OF_PODS = {"Pod", "ChangePod"}
_SECONDS = 900.0
_STAYS = {"steps": [{"pods": 1, "soakSeconds": 600}]}
_ROLLOUT = {"steps": [{"pods": 1, "soakSeconds": 2}, {"pods": "50%", "soakSeconds": 2}]}
_MAX_SLOWER = 2.0  # milliseconds
_PATCHES = 200
_HELD = (Phase.HELD, Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING)


@dataclass(frozen=True)
class Result:
    """Times are in seconds."""

    deployments: int
    replicas: int
    pods: int
    writes: dict[str, int]
    writes_of_a_pod: float
    """To objects of its own: the pod and its ChangePod."""
    writes_of_a_release: float
    """To other objects."""
    overshoot: int
    next_hold_median: float
    next_hold_p99: float
    steps: int
    """Number of steps that followed a soak."""
    next_step_median: float
    next_step_p99: float
    patch_of_held: float
    patch_of_governed: float
    patch_of_not_governed: float
    wrong: tuple[str, ...]


async def ask(
    kubeconfig: Kubeconfig = None,
    deployments: Annotated[int, typer.Option(min=1)] = 300,
    replicas: Annotated[int, typer.Option(min=1)] = 4,
) -> Answer:
    return await answered("Releases in three steps", kubeconfig, _measure, (deployments, replicas))


async def _measure(kubeconfig: Path, directory: Path, plan: tuple[int, int], report: Callable[[str], None]) -> Result:
    deployments, replicas = plan
    names = [f"app-{number}" for number in range(deployments)]
    async with (
        installed(kubeconfig, directory) as installation,
        Gatekeepers(installation, directory, shutdown_delay=0).running(replicas=1),
        await Client.connect(str(installation.kubeconfig)) as client,
        reconciling(client, start_timeout=300) as manager,
    ):
        report(f"creating {deployments} Deployments …")
        first = await _each(names, lambda name: create(installation.admin, installation.name, name, replicas))
        await until(lambda: _succeeded(manager, first), "the first versions", _SECONDS)
        await _govern_by_steps(installation)
        follower = Follower(manager)
        before = writes(manager)
        report("releasing them in steps …")
        second = await _each(names, lambda name: release(installation.admin, installation.name, name, "2"))
        await until(lambda: _succeeded(manager, second), "the second versions", _SECONDS)
        written = Counter(writes(manager))
        written.subtract(before)
        held, governed, free = await _patched(installation, manager, replicas)
    pods = deployments * replicas
    found = {name: count for name, count in written.items() if count and "Event" not in name and "Lease" not in name}
    of_pods = sum(count for name, count in found.items() if name.split()[-1] in _OF_PODS)
    per_pod = round(of_pods / pods, 2)
    _, hold_median, hold_p99 = quantiles(follower.holds)
    wrong = exceeded("writes of a pod", per_pod, _MAX_WRITES)
    wrong += exceeded("pods beyond their step", follower.overshoot, 0)
    wrong += exceeded("a request for a held Deployment, compared", held - governed, _MAX_SLOWER, " ms")
    return Result(
        deployments,
        replicas,
        pods,
        found,
        per_pod,
        round((sum(found.values()) - of_pods) / deployments, 2),
        follower.overshoot,
        hold_median,
        hold_p99,
        *quantiles(follower.waits),
        round(held, 2),
        round(governed, 2),
        round(free, 2),
        tuple(wrong),
    )


async def _govern_by_steps(installation: Installation) -> None:
    """Make the policy, and wait until the gatekeeper knows it."""
    admin, namespace = installation.admin, installation.name
    policy = {"metadata": {"name": "steps"}, "spec": {"rollout": _ROLLOUT}}
    head = {"apiVersion": DEFENSE_POLICIES.api_version, "kind": DEFENSE_POLICIES.kind}
    await admin.create(DEFENSE_POLICIES, {**head, **policy}, namespace)
    await asyncio.sleep(1)


async def _each(names: list[str], act: Callable[[str], Any]) -> list[str]:
    """Act on all Deployments, twenty at a time. Returns their versions."""
    turns = asyncio.Semaphore(20)

    async def one(name: str) -> str:
        async with turns:
            return str(await act(name))

    return list(await asyncio.gather(*map(one, names)))


async def _patched(installation: Installation, manager: Manager, replicas: int) -> tuple[float, ...]:
    """The median milliseconds of a patch: of a held Deployment, of one that is governed without steps, and of one that
    is not governed."""
    admin, own, held = installation.admin, installation.name, "held"
    spec = {"rollout": _STAYS, "selector": {"matchLabels": {"app": held}}}
    await admin.patch(DEFENSE_POLICIES, {"spec": spec}, "steps", own)
    places = ((own, held), (own, "governed"), ("default", "free"))
    for namespace, name in places:
        await create(admin, namespace, name, replicas if namespace == own else 0)
    await asyncio.sleep(1)
    version = await release(admin, own, held, "2")
    await until(lambda: _is_soaking(manager, version), "the soak of the first step", _SECONDS)
    times: dict[str, list[float]] = {name: [] for _, name in places}
    try:
        for number in range(_PATCHES):
            for namespace, name in places:
                began = time.perf_counter()
                await release(admin, namespace, name, str(number), dry_run=True)
                times[name].append((time.perf_counter() - began) * 1000)
    finally:
        await admin.delete(DEPLOYMENTS, "free", "default")
    return tuple(map(statistics.median, times.values()))


def _is_soaking(manager: Manager, version: str) -> bool:
    found = (each for each in manager.caches.releases.all() if version_of(each) == version)
    return any(each.status.rollout.phase == Phase.SOAKING for each in found)


def _succeeded(manager: Manager, versions: list[str]) -> bool:
    found = {version_of(each) for each in manager.caches.releases.all() if state(each) is WorkloadState.SUCCESS}
    return set(versions) <= found


class Follower:
    """Follows the caches. Seconds from the end of each soak: `holds` to the write that lets more pods have the version,
    `waits` to the first pod of the next step. `overshoot`: how many pods versions had beyond their steps."""

    def __init__(self, manager: Manager) -> None:
        self.holds: list[float] = []
        self.waits: list[float] = []
        self.overshoot = 0
        self._releases: dict[str, Release] = {}
        self._pods: dict[str, set[str]] = {}
        self._soaked: dict[str, tuple[int, float]] = {}
        """By version: the pods that it had, and when its soak ended."""
        manager.caches.releases.add_handler(self._release)
        manager.caches.pods.add_handler(self._pod)
        manager.caches.workloads[DEPLOYMENTS.group_kind].add_handler(self._workload)

    def _release(self, _: Release | None, new: Release | None) -> None:
        if new is None:
            return
        version, status = version_of(new), new.status.rollout
        self._releases[version] = new
        if status.phase == Phase.SOAKING:
            self._soaked[version] = len(self._pods.get(version, ())), float(status.soak_end_time_unix)

    def _workload(self, old: Workload | None, new: Workload | None) -> None:
        if old is None or new is None or old.steps is None or old.version != new.version:
            return
        soaked = self._soaked.get(new.version)
        if soaked is not None and (new.steps is None or new.steps.pods > old.steps.pods):
            self.holds.append(max(0.0, time.time() - soaked[1]))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None or new is None:
            return
        version = new.version
        pods = self._pods.setdefault(version, set())
        pods.add(new.metadata.uid)
        known = self._releases.get(version)
        if known is not None and known.status.rollout.phase in _HELD and known.spec.policy.rollout is not None:
            self.overshoot += len(pods) > known.status.rollout.pods
        soaked = self._soaked.get(version)
        if soaked is not None and len(pods) > soaked[0]:
            self.waits.append(max(0.0, time.time() - soaked[1]))
            del self._soaked[version]
