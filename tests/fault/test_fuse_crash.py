"""The reconciler is killed before or after a write about a fuse that trips: one ReleaseFreeze lists all failures."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION, RELEASE_FREEZES, RELEASE_LIMITS
from kube_base.resources import EVENTS
from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, Object, is_write, running_cluster, version

NAMESPACES = ("one", "two", "three")
LIMIT: Object = {
    "apiVersion": API_VERSION,
    "kind": "ReleaseLimit",
    "metadata": {"name": "fleet"},
    "spec": {"fuse": {"failures": 3, "periodSeconds": 3600}},
}


def is_about_the_fuse(request: web.Request) -> bool:
    return is_write(request) and bool({"releaselimits", "releasefreezes"} & set(request.path.split("/")))


async def failed(cluster: Cluster) -> None:
    """The first releases in three namespaces fail."""
    async with cluster.reconciler(identity="before"):
        for namespace in NAMESPACES:
            await cluster.go_to(namespace)
            await cluster.release(version("v1"), image="nosuch:1", replicas=1)
            await cluster.until_states(v1="Suspend")


async def limit(cluster: Cluster) -> Object:
    found = await cluster.get(RELEASE_LIMITS, "fleet", SYSTEM_NAMESPACE)
    assert found is not None
    return found


async def freezes(cluster: Cluster) -> list[Object]:
    return (await cluster.admin.list(RELEASE_FREEZES, SYSTEM_NAMESPACE, as_=dict)).items


async def is_made(cluster: Cluster) -> bool:
    trip: Object = (await limit(cluster)).get("status", {}).get("trip", {})
    return bool(trip.get("made"))


async def told(cluster: Cluster) -> int:
    """How many Events say that the fuse tripped."""
    events = (await cluster.admin.list(EVENTS, SYSTEM_NAMESPACE, as_=dict)).items
    return sum(each["reason"] == "FuseTripped" for each in events)


async def test_one_freeze_lists_all_failures_wherever_the_reconciler_is_killed(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await failed(cluster)
        await cluster.admin.create(RELEASE_LIMITS, LIMIT, SYSTEM_NAMESPACE)
        snapshot = cluster.snapshot()
        for fatal in (1, 2, 3):
            await cluster.restore(snapshot)
            killer = Killer(fatal, is_about_the_fuse)
            cluster.set_fault(killer)
            async with cluster.reconciler(identity=f"killed-{fatal}"):
                await killer.struck.wait()
            assert len(await freezes(cluster)) == (fatal >= 2), fatal
            cluster.set_fault(None)
            async with cluster.reconciler(identity=f"next-{fatal}"):
                await cluster.until(lambda: is_made(cluster), "the trip to be stored")
                await cluster.until(lambda: told(cluster), "the Event")
            (freeze,) = await freezes(cluster)
            listed = [(each["namespace"], each["name"]) for each in freeze["spec"]["fuse"]["workloads"]]
            assert sorted(listed) == sorted((namespace, "sleep") for namespace in NAMESPACES)
            assert freeze["metadata"]["name"] == (await limit(cluster))["status"]["trip"]["freeze"]
            assert await told(cluster) == 1


@pytest.mark.parametrize("end", ["deleted", "ended"])
async def test_a_freeze_that_is_over_is_not_made_again_and_earlier_failures_do_not_count(
    tmp_path: Path, end: str
) -> None:
    async with running_cluster(tmp_path) as cluster:
        await failed(cluster)
        await cluster.admin.create(RELEASE_LIMITS, LIMIT, SYSTEM_NAMESPACE)
        async with cluster.reconciler(identity="first"):
            await cluster.until(lambda: is_made(cluster), "the freeze")
        (freeze,) = await freezes(cluster)
        name = freeze["metadata"]["name"]
        if end == "deleted":
            await cluster.admin.delete(RELEASE_FREEZES, name, SYSTEM_NAMESPACE)
        else:
            over = {"spec": {"until": "2026-01-01T00:00:00Z", "endedBy": "ann"}}
            await cluster.admin.patch(RELEASE_FREEZES, over, name, SYSTEM_NAMESPACE)

        async def is_over() -> bool:
            status = (await limit(cluster))["status"]
            return "trip" not in status and bool(status.get("countedSince"))

        killer = Killer(1, is_about_the_fuse)
        cluster.set_fault(killer)
        async with cluster.reconciler(identity="second"):  # the freeze ended while no reconciler ran
            await killer.struck.wait()
        cluster.set_fault(None)
        async with cluster.reconciler(identity="third"):
            await cluster.until(is_over, "the end of the freeze")
            await cluster.go_to("four")
            await cluster.release(version("v1"), image="nosuch:1", replicas=1)
            await cluster.until_states(v1="Suspend")

            async def counts() -> bool:
                return "four" in json.dumps((await limit(cluster))["status"]["failures"])

            await cluster.until(counts, "the fourth failure")
            assert len(await freezes(cluster)) == (end == "ended")
            assert await is_over(), "a fourth failure alone trips nothing"
