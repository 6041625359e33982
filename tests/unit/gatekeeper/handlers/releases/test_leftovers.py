"""The warning at a release that still has fields that a rollback brought back."""

import json
from typing import Any

import pytest

from altershield.workloads.applied import LAST_APPLIED
from gatekeeper.errors import ReviewError
from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    Object,
    StaticListers,
    deployment,
    kind,
    release,
    released,
    version_of,
)
from tests.unit.gatekeeper.reviews import validate as _validate

pytestmark = pytest.mark.usefixtures("every_kind")

FAILED = version_of(deployment("nosuch"))
PATHS = ["spec.containers[sleep].command", "spec.terminationGracePeriodSeconds", "spec.nodeName"]
STILL_THERE = [f"this field is still there: {path}" for path in PATHS[:2]]


def rolled_back(paths: list[str] = PATHS) -> StaticListers:
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp"}
    own = {"restoredPaths": paths} if paths else {}
    return StaticListers(releases=release(FAILED, status="Failed", conditions=[condition], **own))


def fixed(**metadata: Any) -> Object:
    obj = released("busybox:3")
    obj["metadata"] |= metadata
    return obj


def warnings(new: Object, listers: StaticListers, user: str = "jane") -> list[str]:
    response = _validate(new, released("busybox:1"), listers, user=user)
    assert response["allowed"]
    found: list[str] = response.get("warnings", [])
    return found


def applied(template: Object) -> Object:
    return {"annotations": {LAST_APPLIED: json.dumps({"spec": {"template": template}})}}


def test_release_that_still_has_the_fields_is_admitted_with_their_names() -> None:
    first, *others, last = warnings(fixed(), rolled_back())
    text = f"still has fields that version {FAILED} had removed and that its rollback brought back"
    assert first == f"AlterShield: {kind()} sleep {text}"
    assert others == STILL_THERE
    assert last.startswith("if your manifest lacks them, see https://")


def test_fields_that_the_manifest_has_are_wanted() -> None:
    pod = {"containers": [{"name": "sleep", "command": ["/bin/sleep"]}]}
    assert warnings(fixed(**applied({"spec": pod})), rolled_back())[1:-1] == STILL_THERE[1:]
    whole = {"spec": {**pod, "terminationGracePeriodSeconds": 30}}
    assert warnings(fixed(**applied(whole)), rolled_back()) == []


def owned(operation: str, **fields: Any) -> Object:
    return {"managedFields": [{"manager": "flux", "operation": operation, "fieldsV1": {"f:spec": fields}}]}


@pytest.mark.parametrize(
    ("new", "listers", "user"),
    [
        (fixed(), rolled_back([]), "jane"),
        (fixed(), rolled_back(["spec.nodeName"]), "jane"),
        (fixed(), StaticListers(), "jane"),
        (fixed(), rolled_back(), RECONCILER),
        (released("busybox:1"), rolled_back(), "jane"),  # no release
        (fixed(**owned("Apply", **{"f:template": {}})), rolled_back(), "jane"),
    ],
    ids=("no fields", "removed", "no rollback", "reconciler", "no release", "server-side"),
)
def test_other_requests_have_no_warning(new: Object, listers: StaticListers, user: str) -> None:
    if user == RECONCILER:
        response = _validate(new, released("busybox:1"), listers, user=user)
        assert "warnings" not in response
        return
    assert warnings(new, listers, user) == []


@pytest.mark.parametrize("metadata", [owned("Update", **{"f:template": {}}), owned("Apply", **{"f:replicas": {}})])
def test_other_owners_do_not_remove_the_fields(metadata: Object) -> None:
    assert warnings(fixed(**metadata), rolled_back())


@pytest.mark.parametrize("entries", [1, {}, ["x"], [{"fieldsV1": {}, "manager": 1}]])
def test_unreadable_field_managers_are_a_bad_request(entries: Any) -> None:
    with pytest.raises(ReviewError, match="managedFields"):
        warnings(fixed(managedFields=entries), rolled_back())
