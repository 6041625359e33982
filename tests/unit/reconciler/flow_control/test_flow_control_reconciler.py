"""The leading reconciler and a PodDeletionFlowControl: pending deletions, conditions, Events and conflicts."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api.flow_control import BreakerMode, BreakerState, FlowControlStatus, PodDeletionFlowControl
from altershield.api.kinds import ConditionType
from altershield.api.meta import find_condition
from altershield.api.resources import PODS, Resource
from altershield.flow_control import breaker as breakers
from altershield.flow_control.settling import GIVE_BACK_AFTER, HELD
from altershield.kube.errors import ConflictError, NotFoundError, ServerError
from altershield.kube.events import ObjectRef
from reconciler.flow_control.flow_control_reconciler import FlowControlReconciler
from reconciler.machinery.caches import Caches
from reconciler.machinery.metrics import Metrics
from tests.unit.flow_control.builders import NOW, asked, one, policy
from tests.unit.reconciler.filled import empty_caches


class World:
    """Stands for the API server, the writer and the recorder of Events."""

    def __init__(self, caches: Caches) -> None:
        self.caches = caches
        self.now = float(NOW)
        self.stored = policy("10m/3")
        self.pods: dict[str, str | Exception] = {}
        """The uid of each pod that the API server has, or its error."""
        self.reads: list[str] = []
        self.writes = 0
        self.conflicts = 0
        self.events: list[tuple[str, str]] = []
        self.metrics = Metrics()
        own = FlowControlReconciler(self, caches, self, self, self.metrics, lambda: self.now)  # type: ignore[arg-type]
        self._reconcile = own.reconcile

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: Any) -> Any:
        if resource != PODS:
            return self.stored
        self.reads.append(name)
        found = self.pods.get(name, NotFoundError("gone", code=404))
        if isinstance(found, Exception):
            raise found
        return msgspec.convert({"metadata": {"name": name, "uid": found}}, as_)

    async def save_flow_control(self, old: PodDeletionFlowControl, status: FlowControlStatus) -> PodDeletionFlowControl:
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("changed", code=409)
        self.writes += 1
        self.put(msgspec.structs.replace(old, status=status))
        return self.stored

    def put(self, changed: PodDeletionFlowControl) -> None:
        version = str(int(self.stored.metadata.resource_version) + 1)
        metadata = msgspec.structs.replace(changed.metadata, resource_version=version, generation=1)
        self.stored = msgspec.structs.replace(changed, metadata=metadata)
        self.caches.flow_controls.observe(self.stored)

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        assert (regarding.kind, regarding.name) == ("PodDeletionFlowControl", "guard")
        self.events.append((reason, type_))

    async def reconcile(self, after: float = 0.0) -> float | None:
        self.now += after
        return await self._reconcile(("", "guard"))

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
    assert await world.reconcile(HELD) == 1.0
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
    await world.reconcile(HELD)
    await world.reconcile(HELD)
    assert world.events == [("BreakGlassUsed", "Warning")]
    assert world.metrics.registry.get_sample_value("altershield_break_glass_total") == 1


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
