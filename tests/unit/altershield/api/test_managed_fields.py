"""The times in `metadata.managedFields`: of the governing label, of the pod template and of an apply."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.managed_fields import ManagedMeta
from kube_base.times import unix

Fields = dict[str, Any]

EARLY, LATE = "2026-08-21T07:29:49Z", "2026-08-21T07:30:00Z"
GOVERNED: Fields = {"f:metadata": {"f:labels": {".": {}, f"f:{labels.GOVERNED}": {}}}}
RELEASED: Fields = {
    "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}}}}}}
}


def read(*entries: Any) -> ManagedMeta:
    return msgspec.convert({"name": "shop", "managedFields": list(entries)}, ManagedMeta)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], None),
        ([{"time": EARLY, "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}}}], None),
        ([{"time": LATE, "fieldsV1": RELEASED}], None),
        ([{"fieldsV1": GOVERNED}], None),
        ([{"time": LATE}, {}], None),
        ([{"time": "0000-01-01T00:00:00Z", "fieldsV1": GOVERNED}], None),
        ([{"time": "10000-01-01T00:59:59Z", "fieldsV1": GOVERNED}, {"time": EARLY, "fieldsV1": GOVERNED}], EARLY),
        ([{"time": EARLY, "fieldsV1": GOVERNED}, {"time": LATE, "fieldsV1": {}}], EARLY),
        ([{"time": LATE, "fieldsV1": GOVERNED}, {"time": EARLY, "fieldsV1": GOVERNED}], LATE),
    ],
)
def test_governed_at_is_the_latest_time_of_the_managers_that_own_the_label(
    entries: list[Any], expected: str | None
) -> None:
    assert read(*entries).governed_at == (None if expected is None else unix(expected))


def test_released_at_is_the_latest_time_of_the_managers_that_own_the_template() -> None:
    scaled = {"time": LATE, "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    assert read({"time": EARLY, "fieldsV1": RELEASED}, scaled).released_at == unix(EARLY)
    assert read(scaled).released_at is None


def test_applied_at_is_the_time_of_the_managers_apply_and_not_of_its_updates() -> None:
    applied = {"manager": "ours", "operation": "Apply", "time": EARLY}
    updated = {"manager": "ours", "operation": "Update", "time": LATE}
    others = {"manager": "theirs", "operation": "Apply", "time": LATE}
    assert read(updated, applied, others).applied_at("ours") == unix(EARLY)
    assert read(updated, others).applied_at("ours") is None
    assert read({"manager": "ours", "operation": "Apply"}).applied_at("ours") is None


def test_other_owned_fields_are_not_kept() -> None:
    fields: Fields = {f"f:label-{number}": {} for number in range(1000)}
    entry = {"time": EARLY, "fieldsV1": {"f:metadata": {"f:labels": {**fields, f"f:{labels.GOVERNED}": {}}}}}
    assert len(msgspec.json.encode(read(entry))) < 200
