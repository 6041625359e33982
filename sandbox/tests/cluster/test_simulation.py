"""The whole simulation on the sandbox's API, with Deployments."""

import pytest

from kube_base.resources import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from support.cluster import SPACE, Cluster, Object, waiting


async def test_deployment_becomes_ready_and_each_release_raises_its_revision(cluster: Cluster) -> None:
    await cluster.release(3)
    first = await cluster.until_released()
    assert first["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    pods = (await cluster.client.list(PODS, SPACE)).items
    assert len({pod["status"]["podIP"] for pod in pods}) == 3
    assert {pod["spec"]["nodeName"] for pod in pods} == {"sandbox-1", "sandbox-2", "sandbox-3"}
    await cluster.release(3, "busybox:2")
    second = await cluster.until_released()
    assert second["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    await cluster.release(3, "busybox")
    await cluster.until_released()
    sets = (await cluster.client.list(REPLICA_SETS, SPACE)).items
    revisions = sorted(rs["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for rs in sets)
    assert revisions == ["2", "3"]


async def test_release_with_a_missing_image_keeps_the_old_pods(cluster: Cluster) -> None:
    await cluster.release(4)
    await cluster.until_released()
    await cluster.release(4, "busybo")
    await cluster.until(PODS, waiting("ImagePullBackOff"))
    available = (await cluster.client.get(DEPLOYMENTS, "sleep", SPACE))["status"]["availableReplicas"]
    assert available >= 3
    await cluster.release(4, "busybox")
    await cluster.until_released()


async def test_crashing_pod_is_restarted_with_back_off(cluster: Cluster) -> None:
    await cluster.release(1, "crash")
    await cluster.until(PODS, waiting("CrashLoopBackOff"))
    await cluster.until(PODS, lambda pods: pods[0]["status"]["containerStatuses"][0]["restartCount"] >= 3)
    messages = await cluster.until(EVENTS, lambda events: [e for e in events if e["reason"] == "BackOff"])
    assert any("Back-off restarting failed container sleep" in event["message"] for event in messages)


async def test_recreate_never_runs_two_versions_at_once(cluster: Cluster) -> None:
    strategy = {"type": "Recreate", "rollingUpdate": None}
    await cluster.release(2, strategy=strategy)
    await cluster.until_released()
    before = {pod["metadata"]["uid"] for pod in (await cluster.client.list(PODS, SPACE)).items}
    await cluster.release(2, "busybox:2", strategy=strategy)

    def renewed(pods: list[Object]) -> bool:
        uids = {pod["metadata"]["uid"] for pod in pods}
        assert uids <= before or not uids & before
        return len(uids - before) == 2

    await cluster.until(PODS, renewed)
    await cluster.until_released()


async def test_deleted_pod_is_replaced_and_relabelled_pod_is_released_and_adopted(cluster: Cluster) -> None:
    await cluster.release(2)
    await cluster.until_released()
    victim, other = (await cluster.client.list(PODS, SPACE)).items
    await cluster.delete(PODS, victim["metadata"]["name"])
    await cluster.client.patch(PODS, {"metadata": {"labels": {"app": "freed"}}}, other["metadata"]["name"], SPACE)

    def replaced(pods: list[Object]) -> bool:
        owned = [pod for pod in pods if pod["metadata"].get("ownerReferences")]
        free = [pod for pod in pods if not pod["metadata"].get("ownerReferences")]
        return len(owned) == 2 and [pod["metadata"]["uid"] for pod in free] == [other["metadata"]["uid"]]

    await cluster.until(PODS, replaced)
    await cluster.client.patch(PODS, {"metadata": {"labels": {"app": "sleep"}}}, other["metadata"]["name"], SPACE)
    await cluster.until(
        PODS, lambda pods: len(pods) == 2 and all(pod["metadata"].get("ownerReferences") for pod in pods)
    )


async def test_refused_pods_set_replica_failure(cluster: Cluster, refused: set[str]) -> None:
    refused.add("POST pods")
    await cluster.release(2)

    def failed(items: list[Object]) -> bool:
        conditions = items[0].get("status", {}).get("conditions", ())
        return any(
            (one["type"], one["reason"], one["message"]) == ("ReplicaFailure", "FailedCreate", "over quota")
            for one in conditions
        )

    await cluster.until(DEPLOYMENTS, failed)
    refused.clear()
    released = await cluster.until_released()
    assert not failed([released])


async def test_delete_of_a_deployment_deletes_its_dependents(cluster: Cluster) -> None:
    for propagation in ("Background", "Foreground"):
        await cluster.release(2)
        await cluster.until_released()
        await cluster.delete(DEPLOYMENTS, "sleep", propagation)
        for resource in (DEPLOYMENTS, REPLICA_SETS, PODS):
            await cluster.until_gone(resource)


async def test_orphaned_replica_set_is_adopted_by_a_new_deployment(cluster: Cluster) -> None:
    await cluster.release(2)
    await cluster.until_released()
    await cluster.delete(DEPLOYMENTS, "sleep", "Orphan")
    await cluster.until_gone(DEPLOYMENTS)
    (orphan,) = (await cluster.client.list(REPLICA_SETS, SPACE)).items
    assert not orphan["metadata"].get("ownerReferences")
    await cluster.release(2)
    await cluster.until_released()
    (adopted,) = (await cluster.client.list(REPLICA_SETS, SPACE)).items
    assert adopted["metadata"]["uid"] == orphan["metadata"]["uid"]


async def test_object_whose_owner_has_another_uid_is_deleted(cluster: Cluster) -> None:
    """The owner of `lost` exists with another uid only. `kept` has an existing owner as well."""
    owner = (await cluster.client.create(CONFIG_MAPS, {"metadata": {"name": "owner"}}, SPACE))["metadata"]
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "somebody else's"}
    living = {**gone, "uid": owner["uid"]}
    for name, owners in (("lost", [gone]), ("kept", [gone, living])):
        await cluster.client.create(CONFIG_MAPS, {"metadata": {"name": name, "ownerReferences": owners}}, SPACE)

    def settled(items: list[Object]) -> bool:
        owners = {item["metadata"]["name"]: item["metadata"].get("ownerReferences", []) for item in items}
        return "lost" not in owners and [one["uid"] for one in owners["kept"]] == [owner["uid"]]

    await cluster.until(CONFIG_MAPS, settled)


async def test_garbage_collector_follows_a_new_kind(cluster: Cluster) -> None:
    kind = Resource("example.com", "v1", "things", "Thing")
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [version],
    }
    await cluster.client.create(CRDS, {"metadata": {"name": "things.example.com"}, "spec": spec})
    await cluster.until(
        CRDS,
        lambda crds: [one for one in crds[0].get("status", {}).get("conditions", ()) if one["type"] == "Established"],
        "",
    )
    thing = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "one"}}
    owner = (await cluster.client.create(kind, thing, SPACE))["metadata"]
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": "one", "uid": owner["uid"]}
    owned = {**thing, "metadata": {"name": "two", "ownerReferences": [reference]}}
    await cluster.client.create(kind, owned, SPACE)
    await cluster.delete(kind, "one")
    await cluster.until_gone(kind)


@pytest.mark.parametrize("tls", [True])  # the ConfigMap has the CA of the API server
async def test_namespace_gets_its_account_and_is_emptied_when_deleted(cluster: Cluster) -> None:
    await cluster.until(SERVICE_ACCOUNTS, lambda items: [item["metadata"]["name"] for item in items] == ["default"])
    await cluster.until(CONFIG_MAPS, lambda items: [item["metadata"]["name"] for item in items] == ["kube-root-ca.crt"])
    await cluster.release(2)
    await cluster.until_released()
    await cluster.client.delete(NAMESPACES, SPACE)
    await cluster.until(NAMESPACES, lambda items: SPACE not in [item["metadata"]["name"] for item in items], "")
    await cluster.until_gone(PODS)


async def test_service_gets_an_endpoint_slice_with_its_ready_pods(cluster: Cluster) -> None:
    spec = {"selector": {"app": "sleep"}, "ports": [{"port": 80, "targetPort": 8080}]}
    await cluster.client.create(SERVICES, {"metadata": {"name": "sleep"}, "spec": spec}, SPACE)
    await cluster.release(2)

    def complete(slices: list[Object]) -> bool:
        ready = [one for part in slices for one in part["endpoints"] or () if one["conditions"]["ready"]]
        return len(ready) == 2

    (found,) = await cluster.until(ENDPOINT_SLICES, complete)
    assert found["ports"][0]["port"] == 8080


async def test_unschedulable_pod_is_scheduled_when_a_node_matches(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"disk": "fast"}}
    await cluster.client.create(PODS, {"metadata": {"name": "picky"}, "spec": spec}, SPACE)

    def unschedulable(pods: list[Object]) -> bool:
        return any(one.get("reason") == "Unschedulable" for one in pods[0].get("status", {}).get("conditions", ()))

    await cluster.until(PODS, unschedulable)
    await cluster.client.patch(NODES, {"metadata": {"labels": {"disk": "fast"}}}, "sandbox-2")
    await cluster.until(PODS, lambda pods: pods[0].get("status", {}).get("phase") == "Running")


async def test_restarted_simulation_continues_from_the_state_in_the_api(api_only: Cluster) -> None:
    async with api_only.simulation():
        await api_only.release(5)
        await api_only.until(PODS, lambda pods: len(pods) >= 2)
    await api_only.release(5, "busybox:2")
    async with api_only.simulation():
        released = await api_only.until_released()
        pods = await api_only.until(PODS, lambda pods: len(pods) == 5)
    assert released["status"]["readyReplicas"] == 5
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"busybox:2"}


async def test_pods_of_nodes_that_are_not_simulated_stay_pending(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "elsewhere"}
    await cluster.client.create(PODS, {"metadata": {"name": "strange"}, "spec": spec}, SPACE)
    await cluster.release(1)
    await cluster.until_released()
    assert (await cluster.client.get(PODS, "strange", SPACE))["status"]["phase"] == "Pending"
