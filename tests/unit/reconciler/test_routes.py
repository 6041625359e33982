"""Which keys an event puts into which queues, and which changes the pod groups get."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api import names
from altershield.api.policy import AppliedPolicy
from altershield.api.rollout import Rollout
from altershield.workloads import nodes
from altershield.workloads.hold import STEPS, Cause, Hold
from altershield.workloads.meta import Owner
from altershield.workloads.nodes import Node
from altershield.workloads.pods import Pod, Trouble
from altershield.workloads.workload import Held, Workload
from kube_base.access.queue import WorkQueue
from reconciler.batches.subject import BatchRoutes
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.flow_control.subject import FlowControlRoutes
from reconciler.generated_budgets.subject import GeneratedBudgetRoutes
from reconciler.namespaces import NamespaceRoutes
from reconciler.orders.subject import OrderRoutes
from reconciler.policies.subject import PolicyRoutes
from reconciler.releases.subject import ReleaseRoutes
from reconciler.settings import SettingRoutes
from tests.support.workloads import BY_NAME, GROUP_KINDS
from tests.unit.altershield.budgets import builders as budgets
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1, V2

from .filled import change_pod, empty_caches, namespace, newer, pod, put, release, remove, replica_set, setting

SLEEP = WorkloadKey(GROUP_KINDS["Deployment"], "default", "sleep")
OTHER = WorkloadKey(GROUP_KINDS["Deployment"], "default", "other")
SYSTEM = names.SYSTEM_NAMESPACE


class Calls:
    """Stands for the cache of pod groups and records the calls."""

    def __init__(self) -> None:
        self.discarded: list[WorkloadKey] = []
        self.pods: list[tuple[WorkloadKey, Pod, bool]] = []
        self.batches: list[tuple[WorkloadKey, object, str, bool]] = []

    def discard(self, key: WorkloadKey) -> None:
        self.discarded.append(key)

    def on_pod(self, key: WorkloadKey, pod: Pod, *, gone: bool) -> None:
        self.pods.append((key, pod, gone))

    def on_batch(self, key: WorkloadKey, batch: object, release: Any, *, gone: bool) -> None:
        self.batches.append((key, batch, release.metadata.name, gone))


class Cluster:
    """The caches of a governed namespace, and the calls and queue keys since the last check."""

    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        self.queues: dict[str, WorkQueue[Any]] = defaultdict(WorkQueue)
        self.groups = Calls()
        queues = self.queues
        NamespaceRoutes(caches, queues["namespaces"])
        SettingRoutes(caches, queues["settings"])
        PolicyRoutes(caches, queues["policies"])
        self.releases = ReleaseRoutes(caches, queues["releases"], self.groups)  # type: ignore[arg-type]
        BatchRoutes(caches, queues["batches"])
        OrderRoutes(caches, queues["orders"])
        GeneratedBudgetRoutes(caches, queues["generated-budgets"])
        FlowControlRoutes(caches, queues["flow-controls"])

    def put(self, *objs: Any) -> None:
        put(self.caches, *objs)

    def remove(self, obj: Any) -> None:
        remove(self.caches, obj)

    async def queued(self) -> dict[str, set[Any]]:
        """The keys in each queue that is not empty. The keys are removed from the queues."""
        leading = asyncio.create_task(self.releases.queue_after_settings())
        await asyncio.sleep(0)
        leading.cancel()
        found = {name: await _keys(queue) for name, queue in self.queues.items()}
        return {name: keys for name, keys in found.items() if keys}

    async def forget(self) -> None:
        await self.queued()
        self.groups.__init__()  # type: ignore[misc]


async def _keys(queue: WorkQueue[Any]) -> set[Any]:
    found = set()
    while queue.depth:
        found.add(await queue.get())
    for key in found:
        queue.done(key)
    return found


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with empty_caches() as caches:
        made = Cluster(caches)
        made.put(namespace())
        made.caches.namespaces._reflector.synced.set()
        made.caches.settings._reflector.synced.set()
        await made.forget()
        yield made


# namespaces


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, namespace("shop")),
        (namespace("shop", governed=False), namespace("shop", 2)),
        (namespace("shop"), namespace("shop", 2, governed=False)),
        (namespace("shop"), namespace("shop", 2, deletionTimestamp="2026-08-21T07:29:49Z")),
        (namespace("shop"), None),
    ],
    ids=["created", "governed", "not governed any more", "being deleted", "deleted"],
)
async def test_namespace_is_queued_when_it_becomes_governed_or_ungoverned(
    cluster: Cluster, before: Any, after: Any
) -> None:
    if before is not None:
        cluster.put(before)
        await cluster.forget()
    if after is not None:
        cluster.put(after)
    else:
        cluster.remove(before)
    assert await cluster.queued() == {"namespaces": {("", "shop")}}


async def test_namespace_with_another_change_is_not_queued(cluster: Cluster) -> None:
    cluster.put(namespace("default", 2, annotations={"note": "new"}))
    assert await cluster.queued() == {}


async def test_namespaces_of_the_first_list_are_not_queued(cluster: Cluster) -> None:
    cluster.caches.namespaces._reflector.synced.clear()
    cluster.put(namespace("shop"))
    assert await cluster.queued() == {}


# settings

BLOCKING_KEY = (SYSTEM, "blocking")
ALL = {"settings": {BLOCKING_KEY}, "releases": {SLEEP, OTHER}}


@pytest.fixture
async def with_setting(cluster: Cluster) -> Cluster:
    """Two releases and a setting."""
    cluster.put(release(V1), release(V1, name="other"), setting())
    await cluster.forget()
    return cluster


async def test_new_setting_queues_itself_and_every_release(cluster: Cluster) -> None:
    cluster.put(release(V1), release(V1, name="other"))
    await cluster.forget()
    cluster.put(setting())
    assert await cluster.queued() == ALL


@pytest.mark.parametrize("changed", [setting(2, enable=False), setting(2, status={"enable": True})])
async def test_setting_whose_spec_or_status_changes_queues_every_release(with_setting: Cluster, changed: Any) -> None:
    with_setting.put(changed)
    assert await with_setting.queued() == ALL


async def test_settings_of_the_first_list_queue_no_release(with_setting: Cluster) -> None:
    with_setting.caches.settings._reflector.synced.clear()
    with_setting.put(setting(2, enable=False))
    assert await with_setting.queued() == {"settings": {BLOCKING_KEY}}


async def test_live_change_comes_before_the_releases_that_a_setting_has_queued(with_setting: Cluster) -> None:
    queue = with_setting.queues["releases"]
    with_setting.put(setting(2, enable=False))
    leading = asyncio.create_task(with_setting.releases.queue_after_settings())
    await asyncio.sleep(0)
    assert queue.depth == 2
    with_setting.put(newer(release(V1, name="other")))
    assert await queue.get() == OTHER
    leading.cancel()


async def test_deleted_setting_queues_itself_and_every_release(with_setting: Cluster) -> None:
    with_setting.remove(setting())
    assert await with_setting.queued() == ALL


async def test_setting_with_the_same_spec_and_status_queues_only_itself(with_setting: Cluster) -> None:
    with_setting.put(setting(2))
    assert await with_setting.queued() == {"settings": {BLOCKING_KEY}}


async def test_resync_of_a_setting_queues_only_itself(with_setting: Cluster) -> None:
    with_setting.caches.settings._cache.resync(BLOCKING_KEY)
    assert await with_setting.queued() == {"settings": {BLOCKING_KEY}}


# nodes


def node(version: int, *, ready: bool = True, **own: str) -> Node:
    metadata = {"name": "node-1", "resourceVersion": str(version), "labels": own}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return nodes.read(msgspec.json.encode({"metadata": metadata, "status": {"conditions": conditions}}))


def held(kind: str) -> Workload:
    hold = Hold(V1, (Cause(STEPS, pods=1),), rollout=Rollout(pods=(1,)), replicas=3)
    made = builders.workload(V1, kind=kind)
    return msgspec.structs.replace(made, hold=Held(V1, False, hold))


@pytest.mark.parametrize(
    ("changed", "queues"),
    [(node(2, pool="canary"), True), (node(2, ready=False), True), (node(2), False), (None, True)],
    ids=["labelled", "not ready", "same", "deleted"],
)
async def test_node_that_a_step_may_select_queues_the_held_daemonsets(
    cluster: Cluster, changed: Node | None, queues: bool
) -> None:
    cluster.put(node(1))
    other = msgspec.structs.replace(builders.workload(V1, kind="DaemonSet"), hold=None)
    other = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, name="other"))
    cluster.put(held("DaemonSet"), held("Deployment"), other)
    await cluster.forget()
    if changed is not None:
        cluster.put(changed)
    else:
        cluster.remove(node(1))
    expected = {WorkloadKey(GROUP_KINDS["DaemonSet"], "default", "sleep")}
    assert await cluster.queued() == ({"releases": expected} if queues else {})


# workloads and ReplicaSets


@pytest.mark.parametrize("kind", sorted(BY_NAME))
async def test_added_changed_or_deleted_workload_queues_its_release(cluster: Cluster, kind: str) -> None:
    expected = {"releases": {WorkloadKey(GROUP_KINDS[kind], "default", "sleep")}}
    made = builders.workload(V1, kind=kind)
    cluster.put(made)
    assert await cluster.queued() == expected
    cluster.put(newer(made, replicas=7))
    assert await cluster.queued() == expected
    cluster.remove(made)
    assert await cluster.queued() == expected


async def test_budget_of_a_user_queues_only_workloads_of_its_namespace_that_ask_for_a_budget(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = msgspec.structs.replace(builders.workload(), generates=(("a", "1"),))
    elsewhere = msgspec.structs.replace(asking, metadata=msgspec.structs.replace(asking.metadata, namespace="far"))
    cluster.put(asking, builders.workload(name="other"), elsewhere)
    await cluster.forget()
    for workloads in cluster.caches.workloads.values():
        monkeypatch.setattr(workloads, "all", lambda: pytest.fail("all workloads of the cluster are compared"))
    budget = budgets.budget(maxUnavailable=1)
    metadata = msgspec.structs.replace(budget.metadata, namespace="default")
    cluster.caches.budgets.budgets_informer.observe(msgspec.structs.replace(budget, metadata=metadata))
    assert await cluster.queued() == {"generated-budgets": {SLEEP}}


async def test_pods_that_were_known_before_their_replica_set_are_put_into_the_pod_groups(cluster: Cluster) -> None:
    cluster.put(pod())
    assert cluster.groups.pods == []
    cluster.put(replica_set())
    assert cluster.groups.pods == [(SLEEP, pod(), False)]
    assert await cluster.queued() == {"releases": {SLEEP}}


async def test_replica_set_with_the_same_owner_changes_no_pod(cluster: Cluster) -> None:
    cluster.put(replica_set(), pod())
    await cluster.forget()
    cluster.put(replica_set(2))
    assert cluster.groups.pods == []
    assert await cluster.queued() == {"releases": {SLEEP}}


async def test_pods_of_a_replica_set_with_a_new_owner_are_looked_at_for_both_workloads(cluster: Cluster) -> None:
    cluster.put(replica_set(), pod())
    await cluster.forget()
    cluster.put(replica_set(2, workload="other"))
    assert cluster.groups.pods == [(SLEEP, pod(), False), (OTHER, pod(), False)]
    assert await cluster.queued() == {"releases": {SLEEP, OTHER}}


async def test_pods_of_a_deleted_replica_set_are_looked_at(cluster: Cluster) -> None:
    cluster.put(replica_set(), pod())
    await cluster.forget()
    cluster.remove(replica_set())
    assert cluster.groups.pods == [(SLEEP, pod(), False)]
    assert await cluster.queued() == {"releases": {SLEEP}}


async def test_replica_sets_that_come_and_go_do_not_discard_the_pod_groups(cluster: Cluster) -> None:
    """A user could otherwise keep a pod that flaps from being overdue: new groups do not know when it was last up."""
    cluster.put(replica_set(), pod())
    await cluster.forget()
    cluster.put(replica_set(name="sleep-2"))
    cluster.remove(replica_set(name="sleep-2"))
    assert cluster.groups.discarded == []
    assert cluster.groups.pods == []


# pods


@pytest.fixture
async def with_pod(cluster: Cluster) -> Cluster:
    cluster.put(replica_set(), pod())
    assert [call[1:] for call in cluster.groups.pods] == [(pod(), False)]
    await cluster.forget()
    return cluster


async def test_new_pod_is_put_into_the_pod_groups_and_queues_its_release(cluster: Cluster) -> None:
    cluster.put(replica_set())
    await cluster.forget()
    cluster.put(pod())
    assert cluster.groups.pods == [(SLEEP, pod(), False)]
    assert await cluster.queued() == {"releases": {SLEEP}}


async def test_pod_without_a_known_workload_is_ignored(cluster: Cluster) -> None:
    cluster.put(pod())
    assert cluster.groups.pods == []
    assert await cluster.queued() == {}


async def test_change_of_a_pod_that_no_decision_reads_is_ignored(with_pod: Cluster) -> None:
    with_pod.put(newer(pod(), disrupted=True))
    assert with_pod.groups.pods == []
    assert await with_pod.queued() == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"hash": "sleep-2"},
        {"version": V2},
        {"finished": "1700000000"},
        {"ended": True},
        {"ready": True},
        {"ready_at": 1},
        {"restarts": 1},
        {"node": "node-2"},
        {"packed_ip": "10.0.0.1"},
        {"unscheduled": True},
        {"creating": True},
        {"trouble": Trouble("CrashLoopBackOff")},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_change_of_a_pod_that_decisions_read_goes_into_the_pod_groups(
    with_pod: Cluster, changes: dict[str, Any]
) -> None:
    present = msgspec.structs.replace(pod(), creating=False)
    with_pod.put(newer(present, 2))
    await with_pod.forget()
    changed = newer(present, 3, **changes)
    with_pod.put(changed)
    assert with_pod.groups.pods == [(SLEEP, changed, False)]
    assert await with_pod.queued() == {"releases": {SLEEP}}


async def test_pod_of_the_same_name_takes_the_place_of_its_predecessor_in_the_pod_groups(with_pod: Cluster) -> None:
    other = newer(pod())
    other = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, packed_uid="another"))
    with_pod.put(other)
    assert with_pod.groups.pods == [(SLEEP, pod(), True), (SLEEP, other, False)]


async def test_deleted_pod_is_taken_out_of_the_pod_groups(with_pod: Cluster) -> None:
    with_pod.remove(pod())
    assert with_pod.groups.pods == [(SLEEP, pod(), True)]
    assert await with_pod.queued() == {"releases": {SLEEP}}


async def test_pod_with_a_new_owner_moves_to_the_pod_groups_of_that_workload(with_pod: Cluster) -> None:
    with_pod.put(replica_set(name="other-1", workload="other"))
    await with_pod.forget()
    moved = newer(pod(), owner=Owner("apps/v1", "ReplicaSet", "other-1", "other-1"))
    with_pod.put(moved)
    assert with_pod.groups.pods == [(SLEEP, pod(), True), (OTHER, moved, False)]
    assert await with_pod.queued() == {"releases": {SLEEP, OTHER}}


# ChangeWorkloads and ChangePods


async def test_added_changed_or_deleted_change_workload_queues_its_release(cluster: Cluster) -> None:
    cluster.put(release())
    assert await cluster.queued() == {"releases": {SLEEP}}
    cluster.put(newer(release()))
    assert await cluster.queued() == {"releases": {SLEEP}}
    cluster.remove(release())
    assert await cluster.queued() == {"releases": {SLEEP}}


@pytest.fixture
async def with_release(cluster: Cluster) -> Cluster:
    cluster.put(release())
    await cluster.forget()
    return cluster


async def test_change_pod_with_work_to_do_is_queued_with_its_release(with_release: Cluster) -> None:
    batch = change_pod()
    with_release.put(batch)
    assert await with_release.queued() == {"batches": {batch.metadata.key}, "releases": {SLEEP}}
    assert with_release.groups.batches == [(SLEEP, batch, release().metadata.name, False)]


async def test_unfinished_change_pods_are_queued_when_their_version_is_released_under_another_policy(
    with_release: Cluster,
) -> None:
    done = newer(change_pod(2), unfinished=None, done=True)
    with_release.put(change_pod(1), done)
    await with_release.forget()
    with_release.put(newer(release()))
    assert await with_release.queued() == {"releases": {SLEEP}}
    spec = msgspec.structs.replace(release().spec, policy=AppliedPolicy(namespace="shop", name="own"))
    with_release.put(newer(release(), 3, spec=spec))
    assert await with_release.queued() == {"releases": {SLEEP}, "batches": {change_pod(1).metadata.key}}


async def test_change_pod_that_is_done_queues_only_its_release(with_release: Cluster) -> None:
    with_release.put(change_pod())
    await with_release.forget()
    done = newer(change_pod(), unfinished=None, done=True)
    with_release.put(done)
    assert await with_release.queued() == {"releases": {SLEEP}}
    assert with_release.groups.batches == [(SLEEP, done, release().metadata.name, False)]


async def test_deleted_change_pod_is_taken_out_of_the_pod_groups(with_release: Cluster) -> None:
    with_release.put(change_pod())
    await with_release.forget()
    with_release.remove(change_pod())
    assert await with_release.queued() == {"releases": {SLEEP}}
    assert with_release.groups.batches == [(SLEEP, change_pod(), release().metadata.name, True)]


async def test_change_pod_without_its_change_workload_queues_no_release(cluster: Cluster) -> None:
    cluster.put(change_pod())
    assert await cluster.queued() == {"batches": {change_pod().metadata.key}}
    assert cluster.groups.batches == []
