"""Pods that change in place: resizes by the subresource `resize`, and images."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.manifests import Json
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError
from kube_base.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS
from support.polling import until

SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}}


class Pods:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def run(self, name: str, resources: Json, node: str = "", **container: Any) -> Json:
        """Create a pod with one container, on this node or on any, and wait until it is ready."""
        containers = [{"name": "main", "image": "busybox", "resources": resources, **container}]
        spec = {"containers": containers, **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {})}
        await self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, self.namespace)
        return await self.until(name, lambda pod: condition(pod, "Ready").get("status") == "True")

    async def patch(self, name: str, subresource: str = "resize", **container: Any) -> Json:
        body = {"spec": {"containers": [{"name": "main", **container}]}}
        type_ = PatchType.STRATEGIC
        return await self.client.patch(PODS, body, name, self.namespace, type_=type_, subresource=subresource)

    async def until(self, name: str, met: Any) -> Json:
        async def found() -> Json | None:
            pod = await self.client.get(PODS, name, self.namespace)
            return pod if met(pod) else None

        pod: Json = await until(found, f"the pod {name}")
        return pod


def condition(pod: Json, type_: str) -> Json:
    return next((one for one in pod["status"].get("conditions") or () if one["type"] == type_), {})


def status(pod: Json) -> Json:
    (found,) = pod["status"].get("containerStatuses") or [{}]
    return dict(found)


@pytest.fixture
async def pods(client: Client) -> AsyncIterator[Pods]:
    namespace = f"resized-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})

    async def account() -> bool:
        return bool((await client.list(SERVICE_ACCOUNTS, namespace)).items)

    await until(account, "the ServiceAccount")
    yield Pods(client, namespace)
    await client.delete(NAMESPACES, namespace)


async def test_resize_is_applied_without_a_restart_and_reported_in_the_status(pods: Pods) -> None:
    before = await pods.run("web", SMALL)
    assert status(before)["resources"] == SMALL
    resized = await pods.patch("web", resources={"requests": {"cpu": "200m"}}, image="ignored")
    assert resized["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert resized["spec"]["containers"][0]["image"] == "busybox"
    wanted = {"cpu": "200m", "memory": "64Mi"}
    after = await pods.until("web", lambda pod: status(pod)["resources"] == {"requests": wanted})
    assert status(after)["allocatedResources"] == wanted
    assert status(after)["containerID"] == status(before)["containerID"]
    assert status(after)["restartCount"] == 0
    after = await pods.until("web", lambda pod: not condition(pod, "PodResizeInProgress"))
    assert condition(after, "Ready")["status"] == "True"


async def test_resize_of_a_resource_with_restart_container_restarts_it_and_new_images_too(pods: Pods) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    first = await pods.run("web", SMALL, resizePolicy=policy)
    await pods.patch("web", resources={"requests": {"cpu": "200m"}})
    await pods.until("web", lambda pod: status(pod)["resources"]["requests"]["cpu"] == "200m")
    await pods.patch("web", resources={"requests": {"memory": "96Mi"}})

    def restarted(count: int) -> Any:
        return lambda pod: status(pod)["restartCount"] == count and condition(pod, "Ready")["status"] == "True"

    second = await pods.until("web", restarted(1))
    assert status(second)["resources"]["requests"] == {"cpu": "200m", "memory": "96Mi"}
    assert status(second)["lastState"]["terminated"]["containerID"] == status(first)["containerID"]
    await pods.until("web", lambda pod: not condition(pod, "PodResizeInProgress"))
    await pods.patch("web", "", image="busybox:2")
    third = await pods.until("web", restarted(2))
    assert len({status(pod)["containerID"] for pod in (first, second, third)}) == 3


async def test_resize_beyond_the_capacity_is_refused_and_beyond_the_free_room_deferred(pods: Pods) -> None:
    large = await pods.run("large", {"requests": {"cpu": "40"}})
    await pods.run("web", SMALL, node=large["spec"]["nodeName"])
    with pytest.raises(ApiError) as refused:
        await pods.patch("web", resources={"requests": {"cpu": "65"}})
    assert str(refused.value) == (
        'pods "web" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 65000,'
        " allocatable: 64000"
    )
    await pods.patch("web", resources={"requests": {"cpu": "40"}})
    pending = await pods.until("web", lambda pod: condition(pod, "PodResizePending"))
    found = condition(pending, "PodResizePending")
    assert (found["status"], found["reason"]) == ("True", "Deferred")
    assert found["message"].startswith("Node didn't have enough resource: cpu, requested: 40000, used: ")
    assert status(pending)["resources"] == SMALL
    await pods.patch("web", resources={"requests": {"cpu": "200m"}})
    await pods.until("web", lambda pod: status(pod)["resources"]["requests"]["cpu"] == "200m")
    await pods.until("web", lambda pod: not condition(pod, "PodResizePending"))


async def test_resize_is_refused_if_it_changes_the_qos_class_or_other_fields(pods: Pods) -> None:
    await asyncio.gather(
        pods.run("best-effort", {}),
        pods.run("web", SMALL),
        pods.run("guaranteed", {"limits": {"cpu": "1", "memory": "64Mi"}}),
    )
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    for name, change, causes in (
        (
            "best-effort",
            {"resources": SMALL},
            'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing',
        ),
        (
            "guaranteed",
            {"resources": {"requests": {"cpu": "2"}}},
            '[spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1,'
            ' spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing]',
        ),
        (
            "web",
            {"resources": {"requests": {"cpu": None}}},
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            "web",
            {"resources": {"requests": {"ephemeral-storage": "1Gi"}}},
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        ("web", {"resizePolicy": policy}, "spec: Forbidden: only cpu and memory resources are mutable"),
    ):
        with pytest.raises(ApiError) as refused:
            await pods.patch(name, **change)
        assert str(refused.value) == f'Pod "{name}" is invalid: {causes}'
    static = {"metadata": {"name": "static", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    spec = {"nodeName": "sandbox-1", "containers": [{"name": "main", "image": "busybox", "resources": SMALL}]}
    await pods.client.create(PODS, {**static, "spec": spec}, pods.namespace)
    with pytest.raises(ApiError, match="static pods cannot be resized"):
        await pods.patch("static", resources={"requests": {"cpu": "200m"}})
