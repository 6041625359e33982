"""Ungated releases on the sandbox. No gatekeeper runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from altershield.api import labels, names
from altershield.api.namespace import Namespace
from altershield.api.resources import CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from kube_base.resources import DEPLOYMENTS, EVENTS, NAMESPACES, PODS, REPLICA_SETS
from reconciler.manager import Manager
from tests.fault.reconciler_cluster import Cluster, GoOn, running_cluster, version
from tests.fault.reconciler_stories import followed_up, good_release, without_version

V1 = version("v1")
START_TIMEOUT = 3.0  # seconds, the default of the reconcilers of these tests


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@pytest.fixture
async def manager(bare: Cluster) -> AsyncIterator[Manager]:
    async with bare.reconciler(streaming_lists=False) as manager:
        await bare.until_condition(OPS_CONFIG_INFOS, "branch", "Accepted", names.SYSTEM_NAMESPACE, status="True")
        yield manager


def counted(manager: Manager) -> dict[str, float]:
    family = next(each for each in manager.metrics.registry.collect() if each.name == "altershield_ungated_releases")
    return {each.labels["reason"]: each.value for each in family.samples if each.name.endswith("_total")}


async def ungated(cluster: Cluster) -> list[str]:
    """The names of the Deployments that have an Event."""
    found = await cluster.all(EVENTS)
    return [event["involvedObject"]["name"] for event in found if event["reason"] == "UngatedRelease"]


async def has_pod(cluster: Cluster, image: str) -> bool:
    return any(pod["spec"]["containers"][0]["image"] == image for pod in await cluster.all(PODS))


async def test_ungated_release_is_counted_once(bare: Cluster, manager: Manager) -> None:
    assert counted(manager) == {"no-version": 0, "version-reused": 0}
    await without_version(bare)
    states = await bare.states()
    await bare.set_image("busybox:2")

    async def other() -> bool:
        return (await bare.states()).keys().isdisjoint(states)

    await bare.until(other, "the success of the second release")

    assert counted(manager) == {"no-version": 2, "version-reused": 0}


async def test_pods_of_the_older_version_do_not_count_for_an_ungated_release(bare: Cluster, manager: Manager) -> None:
    """The first pod of the ungated release never comes up, so the old pods stay. All of them passed."""
    await good_release(bare)
    await bare.set_image("nosuch")

    async def stored() -> str:
        return next((name for name in await bare.states() if name != V1), "")

    own = names.change_workload_name("", "sleep", await bare.until(stored, "its ChangeWorkload"))
    await bare.until_condition(CHANGE_WORKLOADS, own, "Ungated", status="True", reason="VersionReused")
    rolled_back = await bare.until_condition(CHANGE_WORKLOADS, own, "RolledBack", status="True", reason="PodNotUp")
    release = await bare.get(CHANGE_WORKLOADS, own)

    assert f"version {V1} was released again" in rolled_back["message"]
    assert release is not None
    assert "defenseCheckPassPods" not in release["status"]
    assert (await bare.deployment())["metadata"]["labels"][labels.VERSION] == V1
    assert counted(manager) == {"no-version": 0, "version-reused": 1}


async def test_ungated_release_is_not_replaced_by_a_rollback_before_its_controller_acts(tmp_path: Path) -> None:
    """Pods of the version before it become overdue while the controllers of the cluster are down."""
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            await cluster.until_condition(OPS_CONFIG_INFOS, "branch", "Accepted", names.SYSTEM_NAMESPACE, status="True")
            await good_release(cluster)
            await cluster.release(version("v2"), image="nosuch")
            await cluster.until_states(v1="Success", v2="Running")
            await cluster.until(lambda: has_pod(cluster, "nosuch"), "a pod of v2")
            await cluster.stop_controllers()
            await cluster.set_image("busybox:3")

            await asyncio.sleep(START_TIMEOUT + 1)

            assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:3"
            assert await cluster.states() == {V1: "Success", version("v2"): "Running"}


async def test_ungated_release_in_a_namespace_seen_late_is_found(bare: Cluster) -> None:
    """The caches did not keep the release, because the namespace was not known to be governed."""
    heard = asyncio.Event()

    async def slow(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if request.path == "/api/v1/namespaces" and "watch" in request.query:
            await heard.wait()
        return await go_on()

    bare.set_fault(slow)
    async with bare.reconciler(streaming_lists=False) as manager:
        await bare.until_condition(OPS_CONFIG_INFOS, "branch", "Accepted", names.SYSTEM_NAMESPACE, status="True")
        await bare.go_to("depot")
        await bare.until_after_the_second_of_creation()
        await bare.release("")
        await bare.until(lambda: bare.all(REPLICA_SETS), "its ReplicaSet")
        assert manager.caches.workloads[DEPLOYMENTS.group_kind].all() == []
        heard.set()
        await followed_up(bare, "NoVersion")


async def test_replica_sets_without_a_deployment_are_not_handled(bare: Cluster, manager: Manager) -> None:
    await bare.until_after_the_second_of_creation()
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "busybox"}]}}
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "sleep", "uid": "1", "controller": True}
    for name, owners in (("lone", []), ("of-a-rollout", [owner])):
        metadata = {"name": name, "ownerReferences": owners}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}
        obj = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
        await bare.admin.create(REPLICA_SETS, obj, bare.namespace)
    await bare.release("")

    async def versioned() -> list[str]:
        """The names of the ReplicaSets, without their hash, that have a version."""
        found = [each["metadata"] for each in await bare.all(REPLICA_SETS)]
        return [each["name"].rpartition("-")[0] for each in found if labels.VERSION in each.get("labels", {})]

    assert await bare.until(versioned, "a version") == ["sleep"]
    assert await bare.until(lambda: ungated(bare), "the Event") == ["sleep"]


async def test_system_namespaces_are_not_governed_although_they_have_the_label(bare: Cluster, manager: Manager) -> None:
    for namespace in ("kube-system", names.SYSTEM_NAMESPACE):
        governed = {"metadata": {"labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}}
        await bare.admin.patch(NAMESPACES, governed, namespace)

        async def seen(namespace: str = namespace) -> Namespace | None:
            return manager.caches.namespaces.get("", namespace)

        found = await bare.until(seen, namespace)
        assert found is not None
        assert found.governed
        assert not manager.caches.governed(namespace)
