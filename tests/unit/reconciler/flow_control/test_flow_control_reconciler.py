"""The leading reconciler and a PodDeletionFlowControl: pending deletions, conditions, Events and conflicts."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api.condition_types import ConditionType
from altershield.api.flow_control import BreakerMode, BreakerState, PodDeletionFlowControl
from altershield.api.meta import find_condition
from altershield.api.selectors import Selector
from altershield.flow_control import breaker as breakers
from altershield.flow_control.decision import Working
from altershield.flow_control.settling import DROP_AFTER, GIVE_BACK_AFTER
from altershield.workloads import pods
from altershield.workloads.pods import Pod
from kube_base.access.errors import ConflictError, NotFoundError, ServerError
from kube_base.access.events import ObjectRef
from kube_base.resources import PODS, Resource
from kube_base.times import rfc3339
from reconciler.cluster.caches import Caches
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.flow_control.flow_control_reconciler import WATCH, FlowControlReconciler
from tests.unit.altershield.flow_control.builders import NOW, asked, one, policy
from tests.unit.altershield.workloads import objects
from tests.unit.reconciler.filled import empty_caches, namespace, put
from tests.unit.reconciler.recording import Announcing


class World(Announcing):
    """Stands for the API server, the writer and the recorder of Events."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self.caches = caches
        self.now = float(NOW)
        self.stored = policy("10m/3")
        self.pods: dict[str, str | Exception] = {}
        """The uid of each pod that the API server has, or its error."""
        self.ended: set[str] = set()
        """The names of those of `pods` that have ended."""
        self.terminating: set[str] = set()
        """The names of those of `pods` that are terminating."""
        self.seconds = 0.0
        """How long a read of a pod takes."""
        self.reads: list[str] = []
        self.writes = 0
        self.conflicts = 0
        self.events: list[tuple[str, str]] = []
        self.registry = CollectorRegistry()
        self.metrics = DisruptionMetrics(self.registry)
        own = FlowControlReconciler(self, caches, self, self, self.metrics, lambda: self.now)  # type: ignore[arg-type]
        self._own = own
        self._reconcile = own.reconcile

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: Any) -> Any:
        if resource != PODS:
            return self.stored
        self.reads.append(name)
        found = self.pods.get(name, NotFoundError("gone", code=404))
        if isinstance(found, Exception):
            raise found
        self.now += self.seconds
        metadata = {"name": name, "uid": found}
        if name in self.terminating:
            metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
        phase = "Failed" if name in self.ended else "Running"
        return msgspec.convert({"metadata": {**metadata, "labels": {"app": "web"}}, "status": {"phase": phase}}, as_)

    def evict(self, name: str, at: float = NOW, reason: str = "TerminationByKubelet") -> None:
        """A kubelet evicts the pod, whose object stays."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": "9",
            "ownerReferences": [owner],
        }
        conditions = [
            {"type": "Ready", "status": "False", "lastTransitionTime": rfc3339(at)},
            {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": rfc3339(at)},
        ]
        status = {"phase": "Failed", "reason": "Evicted", "conditions": conditions}
        obj = {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}
        self.caches.pods.observe(pods.read(msgspec.json.encode(obj)))
        self.pods[name] = name
        self.ended.add(name)

    def restart(self) -> None:
        """Another reconciler leads."""
        self._own = FlowControlReconciler(self, self.caches, self, self, self.metrics, lambda: self.now)  # type: ignore[arg-type]
        self._reconcile = self._own.reconcile

    async def replace_status(self, _: object, changed: PodDeletionFlowControl) -> PodDeletionFlowControl:
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("changed", code=409)
        self.writes += 1
        self.put(changed)
        return self.stored

    def put(self, changed: PodDeletionFlowControl) -> None:
        version = str(int(self.stored.metadata.resource_version) + 1)
        metadata = msgspec.structs.replace(changed.metadata, resource_version=version, generation=1)
        self.stored = msgspec.structs.replace(changed, metadata=metadata)
        self.caches[WATCH].observe(self.stored)

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        assert (regarding.kind, regarding.name) == ("PodDeletionFlowControl", "guard")
        self.events.append((reason, type_))

    async def reconcile(self, after: float = 0.0) -> float | None:
        self.now += after
        return await self._reconcile(("", "guard"))

    def remembered(self) -> dict[str, float]:
        """When pods were read last."""
        return self._own._read_at["guard"]

    def message(self, type_: ConditionType) -> str:
        found = find_condition(self.stored.status.conditions, type_)
        assert found is not None
        return found.message

    def condition(self, type_: ConditionType) -> tuple[str, str]:
        found = find_condition(self.stored.status.conditions, type_)
        assert found is not None
        return found.status, found.reason


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        yield World(caches)


async def test_deletion_that_happened_stays_counted_and_another_one_is_given_back(world: World) -> None:
    world.put(asked(world.stored, "a", "b", "c"))
    world.pods = {"web-b": "b", "web-c": ServerError("down", code=500)}
    assert await world.reconcile(DROP_AFTER) == 1.0
    assert set(world.stored.status.pending) == {"b", "c"}
    await world.reconcile(2)
    assert world.reads == ["web-a", "web-b", "web-c"]  # not again within ten seconds
    await world.reconcile(GIVE_BACK_AFTER)
    assert (world.stored.status.windows[0].used, set(world.stored.status.pending)) == (2, {"c"})
    world.pods["web-c"] = "another"  # a pod of the same name
    await world.reconcile(20)
    assert (world.stored.status.windows[0].used, world.stored.status.pending) == (2, {})
    assert await world.reconcile(700) is None
    assert world.stored.status.windows[0].used == 0


UNGATED = ("UngatedDeletion", "Warning")


async def test_pod_that_a_kubelet_evicts_is_counted_and_reported_once_also_after_a_restart(world: World) -> None:
    put(world.caches, namespace())
    world.put(world.stored)
    await world.reconcile()
    world.evict("web-1")
    world.conflicts = 1
    await world.reconcile(1)
    assert (world.stored.status.windows[0].used, world.events) == (1, [UNGATED])
    assert [each.by for each in world.stored.status.top_sources] == ["system:node:node-1"]
    assert world.registry.get_sample_value("altershield_ungated_deletions_total") == 1
    world.restart()
    for _ in range(2):
        await world.reconcile(1)
    assert (world.stored.status.windows[0].used, world.events) == (1, [UNGATED])
    assert world.reads == ["web-1"]
    world.restart()
    await world.reconcile(3600)
    assert (world.events, world.stored.status.ungated_pods) == ([UNGATED], {})


async def test_pods_that_a_policy_does_not_cover_that_were_lost_long_ago_or_that_a_request_counted_are_not_lost(
    world: World,
) -> None:
    put(world.caches, namespace())
    other = msgspec.structs.replace(world.stored.spec, pod_selector=Selector({"app": "other"}))
    world.put(msgspec.structs.replace(world.stored, spec=other))
    world.evict("web-1")
    await world.reconcile(1)
    world.put(policy("10m/3"))
    world.evict("web-1", NOW - 3600)
    world.evict("web-2", NOW - 3600)
    world.put(asked(world.stored, "web-3"))
    world.evict("web-3")
    await world.reconcile(1)
    assert [event for event in world.events if event == UNGATED] == [UNGATED], "only web-1"
    assert list(world.stored.status.ungated_pods) == ["web-1"]


async def test_deletion_of_a_pod_that_a_kubelet_evicts_meanwhile_stays_counted(world: World) -> None:
    world.put(asked(world.stored, "a"))
    world.pods, world.ended = {"web-a": "a"}, {"web-a"}
    await world.reconcile(GIVE_BACK_AFTER)
    assert (world.stored.status.windows[0].used, world.stored.status.pending) == (1, {})


async def test_conflict_is_decided_again_on_what_the_api_server_has(world: World) -> None:
    world.put(asked(world.stored, "a"))
    world.conflicts = 5
    world.stored = asked(world.stored, "b", now=NOW + 20)  # the cache does not have it yet
    await world.reconcile(20)
    assert (world.conflicts, set(world.stored.status.pending)) == (0, {"b"})
    world.conflicts = 6
    with pytest.raises(ConflictError):
        await world.reconcile(20)


async def test_each_transition_raises_one_event_and_sets_the_conditions(world: World) -> None:
    world.put(policy("1m/5", "10m/5", breaker=BreakerMode.AUTO))
    await world.reconcile()
    assert world.condition(ConditionType.ACCEPTED) == ("True", "UselessRule")
    world.put(asked(world.stored, "a", "b", "c", "d"))
    await world.reconcile(1)
    assert world.condition(ConditionType.NEAR_LIMIT) == ("True", "WarnPercentReached")
    world.put(one(asked(world.stored, "e"), "f")[1])
    await world.reconcile(1)
    await world.reconcile(1)
    assert world.condition(ConditionType.NEAR_LIMIT) == ("True", "LimitReached")
    assert world.condition(ConditionType.BREAKER_OPEN) == ("True", "LimitExceeded")
    await world.reconcile(600)
    assert world.condition(ConditionType.BREAKER_OPEN) == ("Unknown", "HalfOpen")
    assert await world.reconcile(61) is None
    assert world.condition(ConditionType.BREAKER_OPEN) == ("False", "Closed")
    assert world.condition(ConditionType.NEAR_LIMIT) == ("False", "BelowLimits")
    assert world.events == [
        ("RuleWithoutEffect", "Warning"),
        ("DeletionLimitNear", "Warning"),
        ("DeletionLimitReached", "Warning"),
        ("DeletionBreakerOpened", "Warning"),
        ("DeletionBreakerHalfOpen", "Normal"),
        ("DeletionBreakerClosed", "Normal"),
    ]


async def test_manual_breaker_that_a_person_opens_and_resets_gets_its_events(world: World) -> None:
    world.put(policy("10m/5", breaker=BreakerMode.MANUAL))
    await world.reconcile()
    for breaker in (breakers.opened_by(world.stored.status.breaker, "ann", NOW), breakers.reset_by("bob", NOW)):
        world.put(
            msgspec.structs.replace(world.stored, status=msgspec.structs.replace(world.stored.status, breaker=breaker))
        )
        await world.reconcile(10_000)
    assert [reason for reason, _ in world.events] == ["DeletionBreakerOpened", "DeletionBreakerClosed"]
    assert world.stored.status.breaker.state == BreakerState.CLOSED


async def test_deletion_by_break_glass_raises_an_event_once(world: World) -> None:
    world.put(asked(world.stored, "a", exempt=True, break_glass=True))
    await world.reconcile(DROP_AFTER)
    await world.reconcile(DROP_AFTER)
    assert world.events == [("BreakGlassUsed", "Warning")]
    assert world.registry.get_sample_value("altershield_break_glass_total") == 1


async def test_windows_alone_are_written_every_15_seconds(world: World) -> None:
    of = policy("1m/5")
    for after in range(0, 60, 2):
        of = asked(of, f"u{after}", now=NOW + after, exempt=True)
    world.put(msgspec.structs.replace(of, status=msgspec.structs.replace(of.status, pending={})))
    await world.reconcile(61)
    world.writes = 0
    for _ in range(60):
        await world.reconcile(1)
    assert 3 <= world.writes <= 8  # and once for each condition that changes


def pod(name: str, **metadata: Any) -> Pod:
    return objects.pod(name=name, namespace="shop", **metadata)


async def test_cache_confirms_only_the_deletion_of_a_pod_that_it_knows_to_be_terminating(world: World) -> None:
    put(world.caches, namespace("shop"))
    world.put(policy("10m/30"))
    world.put(asked(world.stored, "a", "b", "c"))
    ending = {"deletionTimestamp": "2027-01-15T08:00:00Z"}
    put(world.caches, pod("web-a", uid="a", **ending), pod("web-b", uid="another", **ending), pod("web-c", uid="c"))
    world.pods = {"web-b": "b", "web-c": "c"}
    await world.reconcile(DROP_AFTER)
    assert world.reads == ["web-b", "web-c"]
    assert set(world.stored.status.pending) == {"b", "c"}
    assert world.events == []


async def test_pod_that_the_api_server_shows_as_terminating_stays_counted(world: World) -> None:
    world.put(asked(world.stored, "a", "b"))
    world.pods = {"web-a": "a", "web-b": "b"}
    world.terminating = {"web-a"}
    await world.reconcile(GIVE_BACK_AFTER)
    assert (world.stored.status.windows[0].used, world.stored.status.pending) == (1, {})


async def test_pod_that_was_read_too_early_is_read_again_before_its_count_is_given_back(world: World) -> None:
    world.put(asked(world.stored, "a"))
    world.pods, world.seconds = {"web-a": "a"}, 2.0
    await world.reconcile(GIVE_BACK_AFTER - 1)
    assert set(world.stored.status.pending) == {"a"}
    await world.reconcile(20)
    assert world.stored.status.pending == {}


async def test_reads_of_very_many_pods_are_spread_and_only_those_of_pending_deletions_are_remembered(
    world: World,
) -> None:
    names = [f"{number:02}" for number in range(40)]
    world.put(policy("10m/100"))
    world.put(asked(world.stored, *names))
    world.pods = {f"web-{name}": name for name in names}
    for reads in (32, 40, 72, 80):
        await world.reconcile(5)
        assert len(world.reads) == reads
    await world.reconcile(GIVE_BACK_AFTER)
    await world.reconcile(GIVE_BACK_AFTER)
    await world.reconcile(GIVE_BACK_AFTER)
    assert (world.stored.status.pending, world.remembered()) == ({}, {})


async def test_status_changes_by_itself_when_the_breaker_does_but_not_within_a_second(world: World) -> None:
    of = policy("1m/1", breaker=BreakerMode.AUTO)
    opened = one(asked(of, "a"), "b")[1].status
    world.put(msgspec.structs.replace(of, status=msgspec.structs.replace(opened, pending={}, windows=())))
    assert await world.reconcile() == 600
    assert await world.reconcile(599.8) == 1.0
    assert "some deletions pass from 2027-01-15T08:10:00Z" in world.message(ConditionType.BREAKER_OPEN)


async def test_condition_says_who_opened_a_manual_breaker_and_how_it_closes(world: World) -> None:
    world.put(policy("10m/5", breaker=BreakerMode.MANUAL))
    opened = breakers.opened_by(world.stored.status.breaker, "ann", NOW)
    status = msgspec.structs.replace(world.stored.status, breaker=opened)
    world.put(msgspec.structs.replace(world.stored, status=status))
    await world.reconcile()
    assert world.condition(ConditionType.BREAKER_OPEN) == ("True", "OpenedByPerson")
    message = world.message(ConditionType.BREAKER_OPEN)
    assert message.startswith("ann opened the breaker")
    assert message.endswith("altershield breaker reset guard")


async def test_rules_that_cannot_be_read_are_reported_once(world: World) -> None:
    world.put(policy("soon/5"))
    for _ in range(2):
        await world.reconcile()
    assert world.condition(ConditionType.ACCEPTED) == ("False", "InvalidRule")
    assert world.events == [("RuleWithoutEffect", "Warning")]


async def test_limit_is_near_until_a_tenth_less_is_used(world: World) -> None:
    world.put(policy("10m/100", warn_percent=80))
    world.put(asked(world.stored, *(f"u{number}" for number in range(75))))
    await world.reconcile()
    assert world.condition(ConditionType.NEAR_LIMIT) == ("False", "BelowLimits")
    world.put(asked(world.stored, *(f"v{number}" for number in range(5))))
    await world.reconcile()
    assert world.condition(ConditionType.NEAR_LIMIT) == ("True", "WarnPercentReached")
    for used, status in ((72, "True"), (71, "False")):
        work = Working(world.stored, world.now)
        while work.tallies[0].used > used:
            work.drop(next(iter(work.pending)), give_back=True)
        world.put(msgspec.structs.replace(world.stored, status=work.status()))
        await world.reconcile()
        assert world.condition(ConditionType.NEAR_LIMIT)[0] == status
