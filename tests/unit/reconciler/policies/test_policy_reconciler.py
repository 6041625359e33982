"""The condition Accepted of a policy whose receivers of notifications do not exist, and its Events."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition
from altershield.api.policy import DefensePolicy, DefensePolicySpec, DefensePolicyStatus, Mode
from altershield.api.selectors import Selector
from kube_base.access.events import RETRY, ObjectRef
from kube_base.meta import ObjectMeta
from reconciler.cluster.caches import Caches
from reconciler.policies.policy_reconciler import PolicyReconciler
from tests.unit.reconciler.filled import empty_caches, namespace, put
from tests.unit.reconciler.recording import Announcing

WRONG = Selector(match_labels={"not a key": ""})


class World(Announcing):
    """Stands for the writer and the recorder of Events. `receivers` exist."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self._caches = caches
        self.receivers = {"team"}
        self.writes = 0
        self.events: list[tuple[str, str]] = []
        own = PolicyReconciler(caches, self, self, lambda: 0.0, receiver_rule=self._unknown)  # type: ignore[arg-type]
        self._reconcile = own.reconcile

    def _unknown(self, names: tuple[str, ...], namespace: str) -> str:
        missing = sorted(set(names) - self.receivers)
        return f"{namespace} has no {', '.join(missing)}" if missing else ""

    async def save_status(self, _: object, policy: DefensePolicy, status: DefensePolicyStatus) -> DefensePolicy:
        self.writes += 1
        saved = msgspec.structs.replace(policy, status=status)
        self._put(saved)
        return saved

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        assert (regarding.name, type_) == ("own", "Warning")
        self.events.append((reason, message))

    def _put(self, policy: DefensePolicy) -> None:
        known = self._caches.policies.get("shop", "own")
        version = str(int(known.metadata.resource_version) + 1) if known is not None else "1"
        put(
            self._caches,
            msgspec.structs.replace(
                policy, metadata=msgspec.structs.replace(policy.metadata, resource_version=version)
            ),
        )

    async def apply(self, spec: DefensePolicySpec, generation: int = 1) -> None:
        known = self._caches.policies.get("shop", "own")
        status = known.status if known is not None else DefensePolicyStatus()
        metadata = ObjectMeta(name="own", namespace="shop", uid="u", generation=generation)
        self._put(DefensePolicy(metadata, spec, status))
        await self.reconcile()

    async def reconcile(self) -> None:
        assert await self._reconcile(("shop", "own")) in (None, RETRY)

    @property
    def status(self) -> DefensePolicyStatus:
        found = self._caches.policies.get("shop", "own")
        assert found is not None
        return found.status

    @property
    def accepted(self) -> Condition:
        found = find_condition(self.status.conditions, ConditionType.ACCEPTED)
        assert found is not None
        return found


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        put(caches, namespace("shop"))
        yield World(caches)


@pytest.mark.parametrize("notify", [None, (), ("team",)])
async def test_policy_whose_receivers_exist_is_valid(world: World, notify: tuple[str, ...] | None) -> None:
    await world.apply(DefensePolicySpec(notify=notify))
    assert (world.accepted.status, world.accepted.reason) == ("True", "Valid")
    assert world.events == []
    await world.reconcile()
    assert world.writes == 1


async def test_policy_with_an_unknown_receiver_is_in_force_and_follows_the_file(world: World) -> None:
    spec = DefensePolicySpec(mode=Mode.WARN, notify=("team", "new"))
    await world.apply(spec)
    message = "the policy is in force, but spec.notify has no effect for some receivers: shop has no new"
    assert (world.accepted.status, world.accepted.reason, world.accepted.message) == (
        "True",
        "UnknownReceiver",
        message,
    )
    assert world.status.accepted == spec
    await world.reconcile()
    assert world.writes == 1
    await world.apply(msgspec.structs.replace(spec, priority=1), 2)
    assert world.writes == 2
    assert world.events == [("UnknownReceiver", message)]
    await world.apply(spec, 3)
    world.receivers |= {"new"}
    await world.reconcile()
    assert world.accepted.reason == "Valid"
    world.receivers.clear()
    await world.reconcile()
    assert world.accepted.message.endswith("shop has no new, team")
    assert [reason for reason, _ in world.events] == ["UnknownReceiver"] * 2
    assert world.status.accepted == spec


async def test_wrong_policy_is_rejected_for_its_fault_and_not_for_its_receivers(world: World) -> None:
    await world.apply(DefensePolicySpec(notify=("team",)))
    await world.apply(DefensePolicySpec(notify=("new",), selector=WRONG), 2)
    assert (world.accepted.status, world.accepted.reason) == ("False", "InvalidSelector")
    assert world.status.accepted == DefensePolicySpec(notify=("team",))
    assert [reason for reason, _ in world.events] == ["PolicyRejected"]
