"""Which reviews a deletion causes: how often webhooks are called, and with which object and options.

kube-apiserver repeats a review when its cache was behind. The tests count such repetitions once.
"""

import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from conformance.manifests import Json, config_map
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, KubernetesError, NotFoundError
from kube_base.resources import CONFIG_MAPS, NAMESPACES, PODS, VALIDATING_WEBHOOKS, Resource
from support import hook as hooks
from support.hook import Hook
from support.polling import until

FINALIZER = "example.com/held"


class Space:
    """A namespace whose pods and ConfigMaps are deleted with reviews."""

    def __init__(self, name: str, client: Client, hook: Hook) -> None:
        self.name = name
        self.client = client
        self.hook = hook

    def reviews(self) -> list[tuple[str, int | None]]:
        """Names of the deleted objects, and their `deletionGracePeriodSeconds` in `oldObject`."""
        olds = [review["request"]["oldObject"]["metadata"] for review in self.hook.reviews]
        seen = [(old["name"], old.get("deletionGracePeriodSeconds")) for old in olds]
        return [review for review, _ in itertools.groupby(seen)]

    def requests(self) -> list[Json]:
        return [review["request"] for review in self.hook.reviews]

    async def delete(self, resource: Resource, name: str = "", query: str = "", **options: Any) -> None:
        """Delete one object, or those of a label selector, and forget the reviews before."""
        self.hook.reviews.clear()
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
        path = resource.path(self.name, name)
        await self.client.request("DELETE", path, body=body, query={"labelSelector": query})

    async def pod(self, name: str, **spec: Any) -> None:
        containers = [{"name": "main", "image": "busybox"}]
        body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": containers, **spec}}
        await self.client.create(PODS, body, self.name)

    async def until_gone(self, resource: Resource, name: str) -> None:
        async def gone() -> bool:
            try:
                await self.client.get(resource, name, self.name if resource.namespaced else "")
            except NotFoundError:
                return True
            return False

        await until(gone, f"{name} to be gone")


@pytest.fixture
async def space(tmp_path: Path, client: Client) -> AsyncIterator[Space]:
    async with hooks.serve(tmp_path) as hook:
        name = f"deleted-{uuid.uuid4().hex[:8]}"
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods", "configmaps"]}
        webhook = {
            "name": "deletions.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": hook.client_config,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "rules": [rule],
        }
        await client.create(VALIDATING_WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
        space = Space(name, client, hook)

        async def called() -> bool:
            try:
                await client.request("DELETE", CONFIG_MAPS.path(name, "kube-root-ca.crt"), query={"dryRun": "All"})
                await client.get(Resource("", "v1", "serviceaccounts", "ServiceAccount"), "default", name)
            except NotFoundError:
                return False
            return bool(hook.reviews)

        await until(called, "the API server to read the configuration")
        yield space
        hook.respond = hooks.allow
        await client.delete(VALIDATING_WEBHOOKS, name)
        with contextlib.suppress(NotFoundError):
            await client.delete(NAMESPACES, name)


async def test_deletion_with_finalizers_is_reviewed_each_time_it_is_requested(space: Space) -> None:
    for name in ("plain", "held"):
        finalizers = {"finalizers": [FINALIZER]} if name == "held" else {}
        await space.client.create(CONFIG_MAPS, config_map(name, labels={"of": "test"}, **finalizers), space.name)
    await space.delete(CONFIG_MAPS, query="of=test")
    assert space.reviews() == [("held", None), ("plain", None)]
    assert [(one.get("name", ""), one["options"]) for one in space.requests()] == [
        ("", {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"})
    ] * 2
    await space.delete(CONFIG_MAPS, "held")
    assert space.reviews() == [("held", 0)]
    assert len({one["uid"] for one in space.requests()}) == len(space.requests())
    await space.client.patch(CONFIG_MAPS, {"metadata": {"finalizers": None}}, "held", space.name)
    assert space.reviews() == [("held", 0)]  # the update that removes the last finalizer is no DELETE


async def test_refusal_ends_the_deletion_of_a_collection(space: Space) -> None:
    for name in ("a", "b", "c"):
        await space.client.create(CONFIG_MAPS, config_map(name, labels={"of": "test"}), space.name)

    async def respond(request: Any, review: Json) -> Any:
        allowed = review["request"]["oldObject"]["metadata"]["name"] != "b"
        return await hooks.answering(allowed=allowed)(request, review)

    space.hook.respond = respond
    with pytest.raises(ApiError, match="denied the request"):
        await space.delete(CONFIG_MAPS, query="of=test")
    found = await space.client.list(CONFIG_MAPS, space.name, label_selector="of=test")
    assert [one["metadata"]["name"] for one in found.items] == ["b", "c"]


async def test_graceful_deletion_is_reviewed_once_and_the_final_one_of_the_kubelet_before_both_writes(
    space: Space,
) -> None:
    await space.pod("web")

    async def running() -> bool:
        return bool((await space.client.get(PODS, "web", space.name))["status"]["phase"] == "Running")

    await until(running, "the pod to run")
    await space.delete(PODS, query="app=web")
    await space.until_gone(PODS, "web")
    assert space.reviews() == [("web", None), ("web", 30), ("web", 0)]
    first, last = space.requests()[0], space.requests()[-1]
    assert (first.get("name", ""), "gracePeriodSeconds" in first["options"]) == ("", False)
    assert (last["name"], last["options"]["gracePeriodSeconds"]) == ("web", 0)


async def test_pending_deletion_of_a_pod_is_reviewed_only_when_its_grace_period_becomes_shorter(space: Space) -> None:
    # No kubelet ends a pod on this node.
    await space.pod("stays", nodeName="missing-node", terminationGracePeriodSeconds=60)
    await space.delete(PODS, "stays")
    assert space.reviews() == [("stays", None)]
    assert space.requests()[0]["options"]["gracePeriodSeconds"] == 60
    for options in ({}, {"gracePeriodSeconds": 70}):
        await space.delete(PODS, "stays", **options)
        assert space.reviews() == []
    await space.delete(PODS, query="app=stays")
    assert space.reviews() == []
    await space.delete(PODS, "stays", gracePeriodSeconds=20)
    assert space.reviews() == [("stays", 60)]
    await space.delete(PODS, "stays", gracePeriodSeconds=0)
    assert space.reviews() == [("stays", 20), ("stays", 0)]
    await space.until_gone(PODS, "stays")


async def test_namespace_deletes_pods_first_and_reports_refusals_in_its_conditions(space: Space) -> None:
    await space.pod("web")
    await space.client.create(CONFIG_MAPS, config_map("app"), space.name)
    deny = hooks.answering(allowed=False, status={"message": "no"})

    async def respond(request: Any, review: Json) -> Any:
        return await (deny if review["request"]["kind"]["kind"] == "Pod" else hooks.allow)(request, review)

    space.hook.respond = respond
    space.hook.reviews.clear()
    await space.client.delete(NAMESPACES, space.name)

    async def refused() -> Json:
        found = await space.client.get(NAMESPACES, space.name)
        conditions: list[Json] = found["status"].get("conditions") or []
        return next((one for one in conditions if one["status"] == "True"), {})

    condition = await until(refused, "the condition")
    assert condition["type"] == "NamespaceDeletionContentFailure"
    assert condition["reason"] == "ContentDeletionFailed"
    denied = 'admission webhook "deletions.example.com" denied the request: no'
    assert condition["message"] == f"Failed to delete all resource types, 1 remaining: {denied}"
    assert (await space.client.list(CONFIG_MAPS, space.name)).items == []  # a refused pod does not protect the rest
    assert {(one.get("name", ""), one["options"].get("propagationPolicy")) for one in space.requests()} == {
        ("", "Background")
    }
    before = len(space.requests())
    await space.client.delete(NAMESPACES, space.name)  # no review: it is terminating already
    space.hook.respond = hooks.allow
    await space.until_gone(NAMESPACES, space.name)
    assert {one["oldObject"]["kind"] for one in space.requests()[before:]} == {"Pod"}
    with pytest.raises(KubernetesError, match="not found"):
        await space.client.delete(NAMESPACES, space.name)
