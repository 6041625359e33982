"""Releases that a ReleaseLimit holds begin one after the other, wherever the reconciler is killed."""

import itertools
from pathlib import Path

from aiohttp import web

from altershield.api import labels
from altershield.api.gates.limits import ReleaseLimitSpec
from altershield.api.gates.rules import WhenClosed
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION, CHANGE_WORKLOADS, RELEASE_LIMITS
from altershield.api.rollout import Phase
from altershield.gates.limits import LIMITS, Limit
from kube_base.access.client import PatchType
from kube_base.resources import DEPLOYMENTS
from tests.fault.gatekeeper import admitting
from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, running_cluster
from tests.support import workloads
from tests.unit.gatekeeper.reviews import StaticGates

NAMES = ("c", "a", "b")
LIMIT: Object = {
    "apiVersion": API_VERSION,
    "kind": "ReleaseLimit",
    "metadata": {"name": "pace"},
    "spec": {"concurrent": 1, "whenClosed": "Hold"},
}
GATES = StaticGates(
    {LIMITS: [Limit(SYSTEM_NAMESPACE, "pace", ReleaseLimitSpec(concurrent=1, when_closed=WhenClosed.HOLD))]}
)
_MOVING = (Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING, Phase.FINISHING)


class Watched:
    """A fault that kills the reconciler, and looks at each request how many releases are under way."""

    def __init__(self, cluster: Cluster, fatal: int) -> None:
        self._cluster = cluster
        self.killer = Killer(fatal, is_about_steps)
        self.most: set[str] = set()

    async def __call__(self, request: web.Request, go_on: GoOn) -> web.StreamResponse:
        moving = {name for name, phase in phases(self._cluster).items() if phase in _MOVING}
        self.most = max(self.most, moving, key=len)
        return await self.killer(request, go_on)


def is_about_steps(request: web.Request) -> bool:
    parts = {*request.path.split("/")}
    return request.method in ("PATCH", "PUT", "POST") and bool(parts & {"changeworkloads", "deployments"})


def phases(cluster: Cluster) -> dict[str, str]:
    """The phase of the second release of each Deployment whose release is under way or waits."""
    store, found = cluster.store, {}
    for each in store.list(CHANGE_WORKLOADS.group, CHANGE_WORKLOADS.plural, cluster.namespace):
        status = each.get("status", {})
        if status.get("status") in ("Init", "Running") and status.get("rollout", {}).get("phase"):
            found[each["metadata"]["name"]] = status["rollout"]["phase"]
    return found


async def release(cluster: Cluster, name: str, image: str) -> None:
    template = workloads.template(name, image, terminationGracePeriodSeconds=0)
    if image == "busybox:1":
        strategy = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
        made = workloads.manifest("Deployment", name, image, replicas=1, template=template, **strategy)
        await cluster.admin.create(DEPLOYMENTS, made, cluster.namespace)
        return
    patch = {"spec": {"template": template}}
    await cluster.admin.patch(DEPLOYMENTS, patch, name, cluster.namespace, type_=PatchType.STRATEGIC)


async def all_succeed(cluster: Cluster) -> bool:
    """Whether the present release of each Deployment has succeeded."""
    found = {}
    for each in await cluster.all(CHANGE_WORKLOADS):
        found[each["metadata"]["labels"][labels.VERSION], each["spec"]["serviceName"]] = each.get("status", {}).get(
            "status"
        )
    own = [
        (each["metadata"]["labels"][labels.VERSION], each["metadata"]["name"])
        for each in await cluster.all(DEPLOYMENTS)
    ]
    return len(own) == len(NAMES) and all(found.get(each) == "Success" for each in own)


async def test_never_more_releases_are_under_way_than_the_limit_says_wherever_the_reconciler_is_killed(
    tmp_path: Path,
) -> None:
    async with running_cluster(tmp_path) as cluster, admitting(cluster, tmp_path, GATES):
        await cluster.go_to("shop")
        async with cluster.reconciler(start_timeout=30.0):
            for name in NAMES:
                await release(cluster, name, "busybox:1")
            await cluster.until(lambda: all_succeed(cluster), "the first releases")
            await cluster.admin.create(RELEASE_LIMITS, LIMIT, SYSTEM_NAMESPACE)
            await cluster.until_condition(RELEASE_LIMITS, "pace", "Accepted", SYSTEM_NAMESPACE, status="True")
        storage = cluster.snapshot()
        for fatal in itertools.count(1):
            await cluster.restore(storage)
            fault = Watched(cluster, fatal)
            killed = await play(cluster, fault)
            assert len(fault.most) == 1, f"{fault.most}, with a kill at write {fatal}"
            if not killed:
                break
    assert fatal > 20, "there are fewer writes than expected"


async def play(cluster: Cluster, fault: Watched) -> bool:
    """Release all Deployments, with a reconciler that is killed once. False if the releases ended before."""
    killed = fault.killer.struck
    cluster.set_fault(fault)
    for name in NAMES:
        await release(cluster, name, "busybox:2")

    async def over() -> bool:
        return killed.is_set() or await all_succeed(cluster)

    async with cluster.reconciler(start_timeout=30.0):
        await cluster.until(over, "the releases, or a kill")
    if not killed.is_set():
        return False
    fault.killer.fatal = 0
    killed.clear()
    async with cluster.reconciler(identity="two", start_timeout=30.0):
        await cluster.until(lambda: all_succeed(cluster), "the releases after the kill")
    return True
