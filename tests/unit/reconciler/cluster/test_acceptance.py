"""The metric of objects by their condition Accepted."""

from prometheus_client import CollectorRegistry

from altershield.api.condition_types import ConditionType
from altershield.api.gates.field_guards import FieldGuard, FieldGuardSpec, FieldGuardStatus
from altershield.api.meta import Condition
from kube_base.meta import ObjectMeta
from reconciler.cluster.acceptance import AcceptanceMetrics

ACCEPTED = Condition(ConditionType.ACCEPTED, "True", "Valid")
REJECTED = Condition(ConditionType.ACCEPTED, "False", "PathInvalid")


def guard(*conditions: Condition, generation: int = 1, observed: int = 1, deleted: str | None = None) -> FieldGuard:
    metadata = ObjectMeta("own", "shop", generation=generation, deletion_timestamp=deleted)
    return FieldGuard(metadata, FieldGuardSpec(rules=()), FieldGuardStatus(None, 0, (), conditions, observed))


def counted(*guards: FieldGuard) -> dict[str, float]:
    metrics = AcceptanceMetrics(CollectorRegistry())
    metrics.count("FieldGuard", lambda: guards)
    metrics.count("ReleaseLimit", list)
    (family,) = metrics.collect()
    assert all(each.value == 0 for each in family.samples if each.labels["kind"] == "ReleaseLimit")
    return {each.labels["accepted"]: each.value for each in family.samples if each.labels["kind"] == "FieldGuard"}


def test_objects_are_counted_by_acceptance_from_the_start() -> None:
    assert counted() == {"True": 0, "False": 0, "Unknown": 0}
    edited, new = guard(ACCEPTED, generation=2), guard(observed=0)
    known = (guard(ACCEPTED), guard(ACCEPTED), guard(REJECTED), edited, new)
    assert counted(*known) == {"True": 2, "False": 1, "Unknown": 2}


def test_object_that_is_being_deleted_does_not_count() -> None:
    assert counted(guard(REJECTED, generation=2, deleted="2026-11-28T10:00:00Z"))["Unknown"] == 0
