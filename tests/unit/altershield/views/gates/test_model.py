"""How gates are shown to people."""

from altershield.api.condition_types import ConditionType
from altershield.api.gates.field_guards import FieldGuard, FieldGuardSpec, FieldGuardStatus, FieldRule
from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.meta import Condition
from altershield.views.gates.documents import gate_list
from altershield.views.gates.model import gates
from kube_base.meta import ObjectMeta


def test_a_guard_is_neither_open_nor_closed() -> None:
    metadata = ObjectMeta("limits", "shop")
    spec = FieldGuardSpec(rules=(FieldRule("memory", ("spec.a",)), FieldRule("images", ("spec.b",))))
    wrong = Condition(ConditionType.ACCEPTED, "False", "PathInvalid", "rule x is wrong")
    status = FieldGuardStatus(accepted=spec, conditions=(wrong,))
    freeze = ReleaseFreeze(
        ObjectMeta("z", "shop", creation_timestamp="2026-11-28T00:00:00Z"), ReleaseFreezeSpec(reason="r")
    )
    edited = FieldGuardSpec(rules=(FieldRule("x", ("spec.containers.x",)),))
    found = gates([], [freeze], [], [FieldGuard(metadata, edited, status)], 2e9)
    assert [each.kind for each in found] == ["ReleaseFreeze", "FieldGuard"]
    assert [each.refuses for each in found] == [True, False]
    guard = gate_list(found, ()).items[1]
    assert (guard.open, guard.effect, guard.changes) == (None, "Guard", None)
    assert (guard.reason, guard.problem) == ("rules: memory, images", "rule x is wrong")
