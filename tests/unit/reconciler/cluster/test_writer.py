"""The writer guards and counts each write, puts the result into the caches, and sends only what changed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_pod import ChangePodStatus
from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.ops_config_info import OpsConfigInfoStatus
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import DefensePolicy, DefensePolicySpec, DefensePolicyStatus
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES, OPS_CONFIG_INFOS
from altershield.api.selectors import Selector
from kube_base.access.client import PatchType
from kube_base.access.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubernetesError,
    NotFoundError,
    ServerError,
    UnreachableError,
    from_status,
)
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import DEPLOYMENTS, PODS, Resource
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer, merge_patch, owner
from reconciler.machinery.metrics import Metrics
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1
from tests.unit.reconciler.filled import empty_caches, namespace, pod, put, release, setting

VALUES = st.integers(0, 3) | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES)


class ApiServer:
    """Stands for the client. Records the requests and returns the next answer for each; an answer may be an error."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: list[object] = []

    def _answer(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        options.pop("as_", None)
        self.requests.append((verb, args, options))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if answer is None else msgspec.Raw(msgspec.json.encode(answer))

    async def create(self, *args: Any, **options: Any) -> Any:
        return self._answer("create", args, options)

    async def get(self, *args: Any, **options: Any) -> Any:
        return self._answer("get", args, options)

    async def patch(self, *args: Any, **options: Any) -> Any:
        return self._answer("patch", args, options)

    async def delete(self, *args: Any, **options: Any) -> Any:
        return self._answer("delete", args, options)


class World:
    def __init__(self, caches: Caches) -> None:
        self.api = ApiServer()
        self.caches = caches
        self.metrics = Metrics()
        self.writer = Writer(self.api, caches, self.metrics)  # type: ignore[arg-type]

    def written(self, kind: str, verb: str) -> float:
        """The number of such writes in the metrics."""
        return float(self.metrics.writes.labels(kind, verb)._value.get())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        put(caches, namespace())
        yield World(caches)


def sent(name: str = "sleep", version: str = "2") -> dict[str, Any]:
    """A ChangeWorkload as the API server returns it."""
    made = msgspec.to_builtins(builders.release(V1, name=name))
    made["metadata"]["resourceVersion"] = version
    return dict(made)


async def test_slow_writes_to_one_namespace_leave_slots_for_others(world: World) -> None:
    slots, under_way = asyncio.Semaphore(50), 0
    answered = asyncio.Event()

    async def patch(resource: Resource, patch: Any, name: str, namespace: str, **_: Any) -> msgspec.Raw:
        nonlocal under_way
        async with slots:
            if namespace == "default":
                under_way += 1
                await answered.wait()
                under_way -= 1
            return msgspec.Raw(b"{}")

    world.api.patch = patch  # type: ignore[method-assign,assignment]
    pods = [ObjectMeta(name=f"pod-{number}", namespace="default") for number in range(200)]
    writes = [asyncio.create_task(world.writer.patch_uncached(PODS, each, [])) for each in pods]
    # A task too: the writes that were begun before it come first.
    await asyncio.create_task(world.writer.patch_uncached(PODS, ObjectMeta(name="pod", namespace="other"), []))
    assert 0 < under_way < 50
    answered.set()
    await asyncio.gather(*writes)
    assert world.written("Pod", "patch") == 201


async def test_writes_to_pods_that_hang_do_not_hold_up_other_writes_to_their_namespace(world: World) -> None:
    answered, under_way = asyncio.Event(), 0

    async def patch(resource: Resource, patch: Any, name: str, namespace: str, **_: Any) -> msgspec.Raw:
        nonlocal under_way
        if resource == PODS:
            under_way += 1
            await answered.wait()
        return msgspec.Raw(b"{}")

    world.api.patch = patch  # type: ignore[method-assign,assignment]
    pods = [ObjectMeta(name=f"pod-{number}", namespace="default") for number in range(200)]
    writes = [asyncio.create_task(world.writer.patch_uncached(PODS, each, [])) for each in pods]
    deployment = ObjectMeta(name="sleep", namespace="default")
    await asyncio.create_task(world.writer.patch_uncached(DEPLOYMENTS, deployment, []))
    assert 0 < under_way < 16
    answered.set()
    await asyncio.gather(*writes)
    assert under_way == 200


async def test_evicted_pod_is_terminating_in_the_cache_at_once(world: World) -> None:
    known = pod()
    put(world.caches, known)
    metadata: dict[str, Any] = {
        "name": known.metadata.name,
        "namespace": "default",
        "uid": known.metadata.uid,
        "resourceVersion": "9",
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": known.owner.name, "uid": known.owner.uid}
    metadata |= {"deletionTimestamp": "2026-08-21T07:29:49Z", "ownerReferences": [{**owner, "controller": True}]}
    world.api.answers = [{}, {"metadata": metadata, "spec": {}, "status": {}}]
    await world.writer.evict(known.metadata)
    body, options = world.api.requests[0][1][1], world.api.requests[0][2]
    assert body["deleteOptions"]["preconditions"] == {"uid": known.metadata.uid}
    assert options["subresource"] == "eviction"
    assert [each.exists for each in world.caches.pods.all()] == [False]
    assert world.written("Pod", "create eviction") == 1


async def test_evicted_pod_that_is_gone_at_once_is_no_error(world: World) -> None:
    world.api.answers = [{}, NotFoundError("gone", code=404)]
    await world.writer.evict(pod().metadata)
    assert world.written("Pod", "create eviction") == 1


# create


async def test_created_object_is_counted_and_in_the_cache(world: World) -> None:
    world.api.answers = [sent()]
    made = await world.writer.create(world.caches.releases, builders.release(V1), "default")
    assert [made] == world.caches.releases.all()
    assert world.written("ChangeWorkload", "create") == 1
    ((verb, args, _),) = world.api.requests
    assert (verb, args) == ("create", (CHANGE_WORKLOADS, builders.release(V1), "default"))


@pytest.mark.parametrize("error", [ServerError("internal error"), UnreachableError("no answer")])
async def test_object_that_may_have_been_created_is_read(world: World, error: KubernetesError) -> None:
    world.api.answers = [error, sent()]
    made = await world.writer.create(world.caches.releases, builders.release(V1), "default")
    assert world.caches.releases.all() == [made]
    assert world.api.requests[1] == ("get", (CHANGE_WORKLOADS, builders.release(V1).metadata.name, "default"), {})


async def test_first_error_is_raised_if_the_object_cannot_be_read(world: World) -> None:
    world.api.answers = [ServerError("internal error"), NotFoundError("no such object")]
    with pytest.raises(ServerError, match="internal error"):
        await world.writer.create(world.caches.releases, builders.release(V1), "default")
    assert world.written("ChangeWorkload", "create") == 0


async def test_object_that_was_refused_is_not_read(world: World) -> None:
    world.api.answers = [ForbiddenError("a policy")]
    with pytest.raises(ForbiddenError):
        await world.writer.create(world.caches.releases, builders.release(V1), "default")
    assert len(world.api.requests) == 1


# patch


async def test_json_patch_tests_the_uid(world: World) -> None:
    world.api.answers = [sent()]
    operations = [{"op": "replace", "path": "/spec/countThreshold", "value": 2}]
    patched = await world.writer.patch(world.caches.releases, release(), operations)
    guard = {"op": "test", "path": "/metadata/uid", "value": release().metadata.uid}
    name = release().metadata.name
    expected = (
        "patch",
        (CHANGE_WORKLOADS, [guard, *operations], name, "default"),
        {"type_": PatchType.JSON, "dry_run": False},
    )
    assert world.api.requests == [expected]
    assert world.caches.releases.all() == [patched]
    assert world.written("ChangeWorkload", "patch") == 1


async def test_json_patch_whose_test_fails_is_a_conflict(world: World) -> None:
    world.api.answers = [InvalidError("the server rejected our request", code=422, reason="Invalid")]
    with pytest.raises(ConflictError, match="has changed since it was read") as raised:
        await world.writer.patch(world.caches.pods, pod(), [])
    assert (raised.value.code, raised.value.reason) == (422, "Invalid")


@pytest.mark.parametrize("code", [409, 422])
async def test_json_patch_that_a_webhook_denies_is_not_a_conflict(world: World, code: int) -> None:
    message = 'admission webhook "labels.example.com" denied the request: no'
    world.api.answers = [from_status(code, {"message": message})]
    with pytest.raises(ForbiddenError, match="denied the request"):
        await world.writer.patch(world.caches.pods, pod(), [])


async def test_json_patch_with_an_invalid_result_is_not_a_conflict(world: World) -> None:
    causes = {"causes": [{"field": "spec.replicas"}]}
    world.api.answers = [InvalidError("spec.replicas is invalid", code=422, details=causes)]
    with pytest.raises(InvalidError):
        await world.writer.patch(world.caches.pods, pod(), [])


# status


async def saved(world: World, before: ChangeWorkloadStatus, after: ChangeWorkloadStatus, *, lists: bool) -> Any:
    """The patch that stores the status of a ChangeWorkload."""
    stored = projection.read(msgspec.json.encode(builders.release(V1, before)))
    world.api.answers = [sent()]
    result = await world.writer.save_release(stored, after, lists=lists)
    assert world.caches.releases.all() == [result]
    assert world.written("ChangeWorkload", "patch status") == 1
    ((_, (resource, patch, name, namespace), options),) = world.api.requests
    assert (resource, name, namespace) == (CHANGE_WORKLOADS, stored.metadata.name, "default")
    assert options == {"subresource": "status"}
    assert patch["metadata"] == {"resourceVersion": "1"}  # the API server refuses the patch if the object has changed
    return msgspec.json.decode(msgspec.json.encode(patch["status"]))


RUNNING = ChangeWorkloadStatus(status=WorkloadState.RUNNING, entry_time_unix=5, source=SourceRef(name="a", uid="b"))
PODS_ = (PodInfo(pod="a"),)


async def test_only_changed_fields_of_a_status_are_sent(world: World) -> None:
    after = msgspec.structs.replace(RUNNING, status=WorkloadState.SUCCESS, entry_time_unix=0)
    assert await saved(world, RUNNING, after, lists=False) == {"status": "Success", "entryTimeUnix": None}


async def test_field_removed_from_a_nested_object_of_the_status_is_sent_as_null(world: World) -> None:
    after = msgspec.structs.replace(RUNNING, source=SourceRef(name="c"))
    assert await saved(world, RUNNING, after, lists=False) == {"source": {"name": "c", "uid": None}}


async def test_policy_status_removes_fields_of_deeply_nested_objects(world: World) -> None:
    def status(**labels: str) -> DefensePolicyStatus:
        return DefensePolicyStatus(accepted=DefensePolicySpec(selector=Selector(match_labels=labels)))

    policy = DefensePolicy(ObjectMeta(name="p", namespace="shop", resource_version="1"), status=status(a="1"))
    world.api.answers = [msgspec.Raw(msgspec.json.encode(policy))]
    await world.writer.save_status(world.caches.policies, policy, status(b="2"))
    ((_, (resource, patch, *_), _),) = world.api.requests
    assert resource == DEFENSE_POLICIES
    assert patch["status"] == {"accepted": {"selector": {"matchLabels": {"a": None, "b": "2"}}}}
    assert world.written("DefensePolicy", "patch status") == 1


async def test_pod_lists_are_not_sent_unless_they_were_decided(world: World) -> None:
    after = msgspec.structs.replace(
        RUNNING,
        defense_preparing_pods=PODS_,
        defense_checking_pods=PODS_,
        defense_check_pass_pods=PODS_,
        defense_check_fail_pods=PODS_,
    )
    assert await saved(world, RUNNING, after, lists=False) == {"defenseCheckFailPods": [{"pod": "a"}]}


async def test_decided_pod_lists_replace_the_stored_ones(world: World) -> None:
    after = msgspec.structs.replace(RUNNING, defense_preparing_pods=PODS_)
    assert await saved(world, RUNNING, after, lists=True) == {
        "defensePreparingPods": [{"pod": "a"}],
        "defenseCheckingPods": None,
        "defenseCheckPassPods": None,
    }


async def test_status_of_a_batch_is_written_at_its_resource_version(world: World) -> None:
    seen = builders.change_pod(1, "a", status=ChangePodStatus(status="Init", message="kept"))
    answer = {**msgspec.to_builtins(seen), "status": {"status": "ExecuteDone"}}
    answer["metadata"] = {**answer["metadata"], "resourceVersion": "2"}
    world.api.answers = [answer]
    seen = msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, resource_version="1"))
    stored = await world.writer.save_batch(seen, msgspec.structs.replace(seen.status, status="ExecuteDone"))
    patch = {"metadata": {"resourceVersion": "1"}, "status": {"status": "ExecuteDone"}}
    name = seen.metadata.name
    assert world.api.requests == [("patch", (CHANGE_PODS, patch, name, "default"), {"subresource": "status"})]
    assert stored.status.status == "ExecuteDone"
    assert [batch.done for batch in world.caches.batches.all()] == [True]
    assert world.written("ChangePod", "patch status") == 1


async def test_status_of_a_setting_is_written_at_its_resource_version(world: World) -> None:
    before = setting(status={"enable": True})
    answer = msgspec.to_builtins(before)
    answer["metadata"]["resourceVersion"] = "2"
    world.api.answers = [answer]
    stored = await world.writer.save_status(
        world.caches.settings, before, OpsConfigInfoStatus(enable=True, content="10")
    )
    ((_, (resource, patch, *_), options),) = world.api.requests
    assert (resource, options) == (OPS_CONFIG_INFOS, {"subresource": "status"})
    assert patch == {"metadata": {"resourceVersion": "1"}, "status": {"content": "10"}}
    assert world.caches.settings.all() == [stored]


# delete


async def test_delete_names_the_uid_and_deletes_dependents_in_the_background(world: World) -> None:
    world.api.answers = [None]
    await world.writer.delete(PODS, pod().metadata)
    options = {"uid": "sleep-1-a-uid", "resource_version": "", "propagation": "Background"}
    assert world.api.requests == [("delete", (PODS, "sleep-1-a", "default"), options)]
    assert world.written("Pod", "delete") == 1


async def test_delete_of_an_unchanged_object_names_its_resource_version(world: World) -> None:
    world.api.answers = [None]
    known = pod().metadata
    assert await world.writer.delete(PODS, known, unchanged=True)
    assert world.api.requests[0][2]["resource_version"] == known.resource_version != ""


@pytest.mark.parametrize("error", [NotFoundError("gone"), ConflictError("another object of the same name")])
async def test_delete_of_a_missing_object_is_no_error_and_not_counted(world: World, error: Exception) -> None:
    world.api.answers = [error]
    await world.writer.delete(PODS, pod().metadata)
    assert world.written("Pod", "delete") == 0


# merge patches and owner references


@given(old=OBJECTS, new=OBJECTS)
def test_merge_patch_turns_the_old_object_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(old, new)

    merged = {name: value for name, value in {**old, **patch}.items() if value is not None}
    assert merged == new
    assert patch.keys() == {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": None, "c": 2}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": [1]}, {"a": {"c": 2}}, {"a": {"c": 2}}),
        ({}, {"a": {"c": 2}}, {"a": {"c": 2}}),
    ],
)
def test_merge_patch_replaces_values_of_other_types(
    old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge_patch(old, new) == patch


def test_owner_reference_names_the_controller_and_blocks_its_deletion() -> None:
    made = owner(CHANGE_WORKLOADS, release().metadata)
    name, uid, version = release().metadata.name, release().metadata.uid, CHANGE_WORKLOADS.api_version
    assert made == OwnerReference("ChangeWorkload", name, uid, version, controller=True, block_owner_deletion=True)
