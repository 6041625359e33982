"""Releases that are admitted without a pod, and begin by themselves: gates with `whenClosed: Hold`."""

from typing import Any

import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.gates.limits import Rate
from altershield.api.gates.rules import GateMode, WhenClosed
from altershield.gates.freezes import FREEZES, Freeze
from altershield.gates.gate import Gate
from altershield.gates.limits import LIMITS
from altershield.gates.release import Placed
from altershield.workloads import BY_KIND
from tests.unit.altershield.gates.placed import freeze, limit
from tests.unit.gatekeeper.handlers.releases.workloads import hold_of, workload
from tests.unit.gatekeeper.reviews import (
    Object,
    StaticGates,
    StaticListers,
    about,
    mutate,
    release,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")


def waiting(*placed: Placed) -> StaticListers:
    """Gates with `whenClosed: Hold`, without a policy."""
    found: dict[Gate[Any, Any], list[Placed]] = {FREEZES: [], LIMITS: []}
    for each in placed:
        found[FREEZES if isinstance(each, Freeze) else LIMITS].append(each)
    return StaticListers(gates=StaticGates(found))


def is_held_without_a_pod(new: Object, old: Object, listers: StaticListers) -> bool:
    found, _ = mutate(new, old, listers)
    assert validate(found, old, listers)["allowed"] is True
    return ROLLOUT in found["metadata"]["annotations"] and hold_of(found).pods == 0


def test_release_waits_without_a_pod_for_a_gate_that_holds_if_its_kind_can() -> None:
    gates = waiting(freeze(when_closed=WhenClosed.HOLD))
    if BY_KIND[about().group_kind].keeps_base:
        assert is_held_without_a_pod(workload("busybox:2"), workload(), gates)
        assert validate(workload("busybox:2"), workload(), gates)["status"]["code"] == 429
    else:
        assert validate(workload("busybox:2"), workload(), gates)["status"]["code"] == 403


def test_release_whose_strategy_cannot_be_held_is_denied_by_a_gate_that_holds() -> None:
    gates = waiting(freeze(when_closed=WhenClosed.HOLD))
    new, old = workload("busybox:2"), workload()
    for each in (new, old):
        field, type_ = ("strategy", "Recreate") if "strategy" in each["spec"] else ("updateStrategy", "OnDelete")
        each["spec"] = {**each["spec"], field: {"type": type_}}
    found, _ = mutate(new, old, gates)
    assert found["spec"] == new["spec"] | {"template": found["spec"]["template"]}
    assert validate(new, old, gates)["status"]["code"] == 403


def test_limit_that_holds_holds_each_release_that_can_be_and_is_counted_when_it_begins() -> None:
    can = BY_KIND[about().group_kind].keeps_base
    for rules, holds in (
        ({"concurrent": 5}, True),
        ({"rate": Rate(5, 60)}, True),
        ({"quiet_seconds": 5}, False),
        ({"concurrent": 5, "mode": GateMode.WARN}, False),
    ):
        gates = waiting(limit(when_closed=WhenClosed.HOLD, **rules))
        found, warnings = mutate(workload("busybox:2"), workload(), gates)
        assert (ROLLOUT in found["metadata"]["annotations"]) is (can and holds), rules
        assert warnings == []
        assert validate(found, workload(), gates)["allowed"] is True
        assert bool(gates.admissions.recent(0.0)) is not (can and holds), rules


def test_limit_that_holds_does_not_hold_who_goes_back() -> None:
    gates = waiting(limit(when_closed=WhenClosed.HOLD, concurrent=5))
    back = release(
        version_of(workload()), status="Running", previous={"fingerprint": version_of(workload("busybox:2"))}
    )
    gates.releases = back
    found, _ = mutate(workload("busybox:2"), workload(), gates)
    assert ROLLOUT not in found["metadata"]["annotations"]
