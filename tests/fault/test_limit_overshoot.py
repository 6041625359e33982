"""Two gatekeepers admit many releases at once: how many more than a ReleaseLimit says.

Each gatekeeper counts its own admissions, and learns those of the other one from the reconciler's count.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from altershield.api import labels, names
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import Judged
from altershield.api.namespace import Namespace
from altershield.api.resources import API_VERSION, RELEASE_LIMITS
from altershield.gates.admissions import RecentAdmissions
from altershield.gates.cached import CachedGates, Stored, reader
from altershield.gates.limits import LIMITS
from altershield.gates.release import Release
from kube_base.access.informer import Informer
from kube_base.resources import DEPLOYMENTS, NAMESPACES
from tests.fault.reconciler_cluster import Cluster, Object, running_cluster
from tests.support import workloads

SENT = 400
MOST = 10
PAUSE = 0.005  # seconds between two releases: 400 in two seconds
LIMIT: Object = {
    "apiVersion": API_VERSION,
    "kind": "ReleaseLimit",
    "metadata": {"name": "pace"},
    "spec": {"rate": {"releases": MOST, "periodSeconds": 3600}, "judges": ["Create", "Update"]},
}


@contextlib.asynccontextmanager
async def gatekeeper(cluster: Cluster) -> AsyncIterator[Callable[[str, str], bool]]:
    """The caches of a gatekeeper, and its decision about a release of the workload with this name and version."""
    limits = Informer(cluster.admin, RELEASE_LIMITS, Stored, read=reader(LIMITS), resync=0)
    namespaces = Informer(cluster.admin, NAMESPACES, Namespace, resync=0)
    gates = CachedGates({LIMITS: limits}, namespaces, names.SYSTEM_NAMESPACE, lambda _, each: each.in_force)
    admissions = RecentAdmissions(gates, limits)

    def admit(name: str, version: str) -> bool:
        now = time.time()
        workload = NamedWorkload(cluster.namespace, "apps/v1", "Deployment", name)
        asked = Release(
            cluster.namespace,
            {},
            ({},),
            Judged.CREATE,
            workload=workload,
            version=version,
            admitted=admissions.recent(now),
        )
        if gates.closed(asked, now):
            return False
        admissions.add(asked, now, held=False)
        return True

    running = [asyncio.create_task(each.run()) for each in (limits, namespaces)]
    await limits.wait_synced()
    await namespaces.wait_synced()
    yield admit
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def admitted(cluster: Cluster) -> int:
    """How many of the releases two gatekeepers admit, each asked at random."""
    count, chance = 0, random.Random(7)  # noqa: S311
    async with gatekeeper(cluster) as one, gatekeeper(cluster) as other:
        for number in range(SENT):
            version, name = f"{number:032x}", f"web-{number}"
            if chance.choice((one, other))(name, version):
                count += 1
                stamp = {labels.VERSION: version}
                template = workloads.template(name, "busybox", stamp)
                obj = workloads.manifest("Deployment", name, "busybox", replicas=0, labels=stamp, template=template)
                await cluster.admin.create(DEPLOYMENTS, obj, cluster.namespace)
            await asyncio.sleep(PAUSE)
    return count


@pytest.mark.parametrize("counting", [True, False], ids=["counted", "reconciler away"])
async def test_each_further_gatekeeper_admits_at_most_the_limit_once_more(tmp_path: Path, counting: bool) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        await cluster.admin.create(RELEASE_LIMITS, LIMIT, names.SYSTEM_NAMESPACE)
        async with contextlib.AsyncExitStack() as stack:
            if counting:
                await stack.enter_async_context(cluster.reconciler())
                await cluster.until_condition(RELEASE_LIMITS, "pace", "Accepted", names.SYSTEM_NAMESPACE, status="True")
            found = await admitted(cluster)
        print(f"{found} of {SENT} releases in {SENT * PAUSE:.0f} s; at most {MOST} may begin")
        assert MOST <= found <= 2 * MOST
        if not counting:
            assert found == 2 * MOST
