"""The controllers of the reconciler on the sandbox."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from altershield.api import labels, names
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from kube_base.access.client import PatchType
from kube_base.access.errors import NotFoundError
from kube_base.resources import DEPLOYMENTS, EVENTS, NAMESPACES, PODS, REPLICA_SETS, Resource
from tests.fault.reconciler_cluster import Cluster, Object, running_cluster, version

V1, V2 = version("v1"), version("v2")
SYSTEM = names.SYSTEM_NAMESPACE


def release(version: str) -> str:
    return names.change_workload_name("", "sleep", version)


@pytest.fixture
async def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster on which a reconciler runs. A parameter says whether it has a garbage collector."""
    async with running_cluster(tmp_path, garbage=getattr(request, "param", False)) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            await cluster.until_condition(OPS_CONFIG_INFOS, "branch", "Accepted", SYSTEM, status="True")
            yield cluster


async def events(cluster: Cluster, namespace: str = "") -> set[str]:
    listed: list[Object] = (await cluster.admin.list(EVENTS, namespace or cluster.namespace, as_=dict)).items
    return {event["reason"] for event in listed if event["reportingComponent"] == "altershield"}


async def until_event(cluster: Cluster, reason: str, namespace: str = "") -> None:
    async def met() -> bool:
        return reason in await events(cluster, namespace)

    await cluster.until(met, f"the Event {reason}")


async def deployment_labels(cluster: Cluster) -> Object:
    return dict((await cluster.deployment())["metadata"]["labels"])


async def until_labelled(cluster: Cluster, key: str, expected: bool) -> None:
    async def met() -> bool:
        return (key in await deployment_labels(cluster)) == expected

    await cluster.until(met, f"label {key}: {expected}")


async def existing(cluster: Cluster, resource: Resource, name: str, namespace: str = "") -> Object:
    found = await cluster.get(resource, name, namespace)
    assert found is not None
    return found


async def until_renewed(cluster: Cluster, resource: Resource, before: Object) -> None:
    """Wait for another object of the same name."""
    metadata = before["metadata"]

    async def renewed() -> bool:
        after = await cluster.get(resource, metadata["name"], metadata["namespace"])
        return after is not None and after["metadata"]["uid"] != metadata["uid"]

    await cluster.until(renewed, f"another {resource.kind} {metadata['name']}")


async def until_up(cluster: Cluster) -> None:
    async def up() -> bool:
        ready: object = (await cluster.deployment()).get("status", {}).get("readyReplicas")
        return ready == 2

    await cluster.until(up, "the pods")


# settings


async def test_settings_are_created_and_created_again_when_deleted(cluster: Cluster) -> None:
    blocking = await existing(cluster, OPS_CONFIG_INFOS, "blocking", SYSTEM)
    branch = await existing(cluster, OPS_CONFIG_INFOS, "branch", SYSTEM)
    assert blocking["spec"] == {"type": "isBlockingUp", "enable": True, "remark": "Enabling Blockade"}
    assert branch["spec"] == {
        "type": "isBranch",
        "enable": False,
        "content": "10",
        "remark": "Enabling Batch Protection",
    }

    await cluster.admin.delete(OPS_CONFIG_INFOS, "blocking", SYSTEM)

    await until_renewed(cluster, OPS_CONFIG_INFOS, blocking)


@pytest.mark.parametrize(
    ("name", "spec", "namespace", "reason"),
    [
        ("branch", {"type": "isBranch", "enable": True, "content": "many"}, SYSTEM, "InvalidContent"),
        ("branch", {"type": "isBlockingUp", "enable": True}, SYSTEM, "UnknownType"),
        ("banana", {"type": "isBlockingUp", "enable": False}, SYSTEM, "UnknownName"),
        ("blocking", {"type": "isBlockingUp", "enable": False}, "shop", "WrongNamespace"),
    ],
)
async def test_invalid_setting_is_reported_and_has_no_effect(
    cluster: Cluster, name: str, spec: Object, namespace: str, reason: str
) -> None:
    await cluster.setting(name, spec, namespace)

    await cluster.until_condition(OPS_CONFIG_INFOS, name, "Accepted", namespace, status="False", reason=reason)
    await until_event(cluster, "SettingRejected", namespace)
    await cluster.release(V1, replicas=3)
    await cluster.until_states(v1="Success")
    assert len(await cluster.all(CHANGE_PODS)) == 3
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
    await until_labelled(cluster, labels.SUSPEND, True)


async def test_batches_have_the_size_of_the_setting(cluster: Cluster) -> None:
    await cluster.setting("branch", {"enable": True, "content": "40%"})
    await cluster.until_condition(OPS_CONFIG_INFOS, "branch", "Accepted", SYSTEM, observedGeneration=2)

    await cluster.release(V1, replicas=5)

    await cluster.until_states(v1="Success")
    sizes = sorted(len(each["spec"]["podInfos"]) for each in await cluster.all(CHANGE_PODS))
    assert sum(sizes) == 5
    assert max(sizes) == 2


async def test_turning_blocking_off_and_on_removes_and_adds_the_suspend_label(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.setting("blocking", {"enable": False})
    await cluster.until_condition(OPS_CONFIG_INFOS, "blocking", "Accepted", SYSTEM, observedGeneration=2)
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
    await cluster.until_states(v1="Suspend")
    await until_event(cluster, "ReleaseSuspended")
    assert labels.SUSPEND not in await deployment_labels(cluster)

    await cluster.setting("blocking", {"enable": True})
    await until_labelled(cluster, labels.SUSPEND, True)

    await cluster.setting("blocking", {"enable": False})
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "pass")
    await cluster.until_states(v1="Success")
    await until_labelled(cluster, labels.SUSPEND, False)


# releases


async def test_deleting_the_failed_pod_ends_the_suspension(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    batch = (await cluster.all(CHANGE_PODS))[0]
    await cluster.judge(batch, "unpass")
    await until_labelled(cluster, labels.SUSPEND, True)

    await cluster.admin.delete(PODS, batch["spec"]["podInfos"][0]["pod"], "shop")

    await cluster.until_states(v1="Success")
    await until_labelled(cluster, labels.SUSPEND, False)
    await until_event(cluster, "ReleaseResumed")
    assert len(await cluster.all(CHANGE_PODS)) == 3


async def test_repair_label_set_before_the_suspension_does_not_end_it(cluster: Cluster) -> None:
    """The label stays if the manifest of a repair is applied again."""
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.admin.patch(DEPLOYMENTS, {"metadata": {"labels": {labels.IGNORED_SUSPEND: "true"}}}, "sleep", "shop")

    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")

    await until_labelled(cluster, labels.SUSPEND, True)
    assert labels.IGNORED_SUSPEND not in await deployment_labels(cluster)


async def test_releasing_the_old_version_during_a_release_verifies_it_again(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    before = await existing(cluster, CHANGE_WORKLOADS, release(V1))
    await cluster.release(V2, image="never-ready")
    await cluster.until_states(v1="Success", v2="Running")

    await cluster.release(V1)

    await cluster.until_states(v1="Success")
    after = await existing(cluster, CHANGE_WORKLOADS, release(V1))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["workloadGeneration"] > before["spec"]["workloadGeneration"]


async def test_recreated_deployment_gets_a_new_change_workload(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    before = await existing(cluster, CHANGE_WORKLOADS, release(V1))
    await cluster.admin.delete(DEPLOYMENTS, "sleep", "shop", propagation="Background")

    await cluster.release(V1)

    await until_renewed(cluster, CHANGE_WORKLOADS, before)
    await cluster.until_states(v1="Success")


@pytest.mark.parametrize("cluster", [True], indirect=True)
async def test_deployment_that_adopts_orphans_removes_their_change_workloads(cluster: Cluster) -> None:
    """`kubectl delete --cascade=orphan` leaves such orphans."""
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.admin.delete(DEPLOYMENTS, "sleep", "shop", propagation="Orphan")

    async def gone() -> bool:
        return not await cluster.all(DEPLOYMENTS)

    await cluster.until(gone, "the Deployment to be gone")
    await cluster.release(V2)

    await cluster.until_states(v2="Success")


async def test_deleted_change_workload_is_created_again(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    before = await existing(cluster, CHANGE_WORKLOADS, release(V1))

    await cluster.admin.delete(CHANGE_WORKLOADS, release(V1), "shop")

    await until_renewed(cluster, CHANGE_WORKLOADS, before)
    await cluster.until_states(v1="Success")


async def test_release_in_an_ungoverned_namespace_is_verified_only_once_it_is_governed(cluster: Cluster) -> None:
    await cluster.admin.patch(NAMESPACES, {"metadata": {"labels": {labels.GOVERNED: None}}}, "shop")
    await cluster.release(V1)

    await until_up(cluster)
    assert await cluster.states() == {}
    assert not any(labels.OPERATE_FINISHED in pod["metadata"]["labels"] for pod in await cluster.all(PODS))

    await cluster.admin.patch(NAMESPACES, {"metadata": {"labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}}, "shop")
    await cluster.until_states(v1="Success")


# rollback


async def test_requested_rollback_works_after_the_release_succeeded(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.release(V2, image="busybox:2")
    await cluster.until_states(v2="Success")

    await cluster.set_status(CHANGE_WORKLOADS, release(V2), {"status": "Rollback"})

    await cluster.until_states(v1="Success", v2="Failed")
    condition = await cluster.until_condition(CHANGE_WORKLOADS, release(V2), "RolledBack", status="True")
    assert condition["reason"] == "Requested"
    assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"


async def test_requested_rollback_of_a_paused_release_without_pods_is_carried_out(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.admin.patch(DEPLOYMENTS, {"spec": {"paused": True}}, "sleep", "shop")
    await cluster.release(V2, image="busybox:2")
    await cluster.until_condition(CHANGE_WORKLOADS, release(V2), "Stalled", status="True", reason="NotRolledOut")

    await cluster.set_status(CHANGE_WORKLOADS, release(V2), {"status": "Rollback"})

    await cluster.until_states(v1="Success", v2="Failed")
    await cluster.until_condition(CHANGE_WORKLOADS, release(V2), "RolledBack", status="True", reason="Requested")
    assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"


async def test_requested_rollback_without_a_target_is_reported(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")

    await cluster.set_status(CHANGE_WORKLOADS, release(V1), {"status": "Rollback"})

    await cluster.until_condition(CHANGE_WORKLOADS, release(V1), "RolledBack", status="False", reason="NoTarget")
    await cluster.until_states(v1="Success")
    await until_event(cluster, "RollbackImpossible")


async def test_failing_release_is_rolled_back_to_the_version_from_before_governance(cluster: Cluster) -> None:
    # times of the API are whole seconds: a release in the second in which the namespace was created counts as older
    await asyncio.sleep(1.05 - time.time() % 1)
    await cluster.go_to("legacy")
    await cluster.release("")

    await until_up(cluster)
    await cluster.release(V1, image="crash")

    await cluster.until_condition(CHANGE_WORKLOADS, release(V1), "RolledBack", status="True", reason="PodNotUp")
    assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"
    await until_event(cluster, "RolledBack")


async def test_version_released_again_after_a_rollback_is_suspended_instead_of_rolled_back(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.release(V2, image="nosuch")
    await cluster.until_rolled_back()

    await cluster.release(V2, image="nosuch", repair=True)

    await cluster.until_states(v1="Success", v2="Suspend")
    await cluster.until_condition(CHANGE_WORKLOADS, release(V2), "Verified", reason="FailedByHealth")
    await cluster.until_condition(CHANGE_WORKLOADS, release(V2), "RolledBack", reason="ReleasedAgain")
    await until_event(cluster, "ReleaseSuspended")


async def test_first_version_that_does_not_start_is_suspended_with_the_messages_of_its_pods(cluster: Cluster) -> None:
    await cluster.release(V1, image="nosuch")

    await cluster.until_states(v1="Suspend")
    await until_labelled(cluster, labels.SUSPEND, True)
    condition = await cluster.until_condition(CHANGE_WORKLOADS, release(V1), "Verified", reason="FailedByHealth")
    assert "ImagePull" in condition["message"]
    condition = await cluster.until_condition(CHANGE_WORKLOADS, release(V1), "RolledBack", reason="NotUndone")
    assert "no older version has passed verification" in condition["message"]


async def replica_set(cluster: Cluster, image: str, version: str) -> Object | None:
    """The ReplicaSet whose template has this image and the label of this version."""
    for found in await cluster.all(REPLICA_SETS):
        template = found["spec"]["template"]
        own = template["metadata"]["labels"].get(labels.VERSION)
        if (template["spec"]["containers"][0]["image"], own) == (image, version):
            return dict(found)
    return None


async def edit(cluster: Cluster, image: str, version: str) -> None:
    """Change the image in the ReplicaSet of a version, and delete its pods. The Deployment gets another ReplicaSet with
    the version's own image."""
    found = await cluster.until(lambda: replica_set(cluster, image, version), "the ReplicaSet")
    assert found is not None
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "busybox:edited"}]
    await cluster.admin.patch(REPLICA_SETS, change, found["metadata"]["name"], cluster.namespace, type_=PatchType.JSON)
    for pod in await cluster.all(PODS):
        if pod["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]:
            with contextlib.suppress(NotFoundError):
                await cluster.admin.delete(PODS, pod["metadata"]["name"], cluster.namespace)
    await cluster.until(lambda: replica_set(cluster, image, version), "another ReplicaSet")


async def test_release_is_rolled_back_although_its_replica_set_was_edited(cluster: Cluster) -> None:
    await cluster.release(V1)
    await cluster.until_states(v1="Success")
    await cluster.release(V2, image="never-ready:2")
    await cluster.until_states(v1="Success", v2="Running")

    await edit(cluster, "never-ready:2", V2)

    await cluster.until_rolled_back()


async def test_edited_replica_set_does_not_end_a_suspension(cluster: Cluster) -> None:
    await cluster.release(V1, image="never-ready:1")
    await until_labelled(cluster, labels.SUSPEND, True)

    await edit(cluster, "never-ready:1", V1)

    async def edited_pods_ready() -> bool:
        return (await cluster.deployment())["status"].get("readyReplicas") == 2

    await cluster.until(edited_pods_ready, "the pods of the edited ReplicaSet to be ready")
    await asyncio.sleep(2)
    assert (await cluster.states())[V1] != "Success"
    assert labels.SUSPEND in await deployment_labels(cluster)
