"""The patches that pause a rollout and that take back exactly this."""

import json
from typing import Any

import jsonpatch
import pytest

from altershield.api.annotations import PAUSED
from altershield.workloads import hold as pausing
from altershield.workloads.hold import Marker
from tests.support.workloads import BY_NAME

DEPLOYMENT = [{"op": "add", "path": "/spec/paused", "value": True}]
CLONE_SET = [{"op": "add", "path": "/spec/updateStrategy/paused", "value": True}]
STATEFUL_SET = [
    {"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"partition": 9}}}
]


def paused(raw: dict[str, Any], wanted: list[dict[str, Any]]) -> Any:
    patch = pausing.pause(raw, wanted, Marker("2026-01-01T00:00:00Z", "v", "a pod failed"))
    return jsonpatch.apply_patch(raw, patch)


def continued(raw: dict[str, Any], wanted: list[dict[str, Any]]) -> Any:
    return jsonpatch.apply_patch(raw, pausing.unpause(raw, wanted))


@pytest.mark.parametrize(
    ("wanted", "spec"),
    [
        (DEPLOYMENT, {"replicas": 3}),
        (DEPLOYMENT, {"paused": False}),
        (CLONE_SET, {}),
        (CLONE_SET, {"updateStrategy": {"type": "InPlaceIfPossible"}}),
        (STATEFUL_SET, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
        (STATEFUL_SET, {}),
    ],
)
def test_pause_is_taken_back_completely(wanted: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    raw = {"metadata": {"annotations": {"own": "1"}}, "spec": spec}
    held = paused(raw, wanted)
    marker = json.loads(held["metadata"]["annotations"][PAUSED])
    assert (marker["version"], marker["reason"], marker["time"]) == ("v", "a pod failed", "2026-01-01T00:00:00Z")
    assert held["metadata"]["annotations"]["own"] == "1"
    after = continued(held, wanted)
    if spec == {} and wanted is CLONE_SET:
        assert after["spec"] == {"updateStrategy": {}}
        return
    assert after == raw


def test_workload_without_annotations_gets_the_annotation() -> None:
    held = paused({"metadata": {}, "spec": {}}, DEPLOYMENT)
    assert held["spec"] == {"paused": True}
    assert continued(held, DEPLOYMENT) == {"metadata": {"annotations": {}}, "spec": {}}


def test_defaults_that_the_api_server_adds_do_not_keep_the_pause() -> None:
    held = paused({"metadata": {}, "spec": {}}, STATEFUL_SET)
    held["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = 1
    assert "updateStrategy" not in continued(held, STATEFUL_SET)["spec"]


def test_workload_that_is_paused_already_gets_no_annotation() -> None:
    raw = {"metadata": {}, "spec": {"paused": True}}
    assert pausing.pause(raw, DEPLOYMENT, Marker("", "v", "")) == []


def test_field_that_somebody_changed_since_stays() -> None:
    held = paused({"metadata": {}, "spec": {}}, STATEFUL_SET)
    held["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    after = continued(held, STATEFUL_SET)
    assert after["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}
    assert PAUSED not in after["metadata"]["annotations"]


def test_annotation_says_when_the_pause_ends() -> None:
    marker = Marker("2026-01-01T00:00:00Z", "v", "", until="2026-01-01T01:00:00Z")
    held = jsonpatch.apply_patch({"metadata": {}, "spec": {}}, pausing.pause({"spec": {}}, DEPLOYMENT, marker))
    assert json.loads(held["metadata"]["annotations"][PAUSED])["until"] == "2026-01-01T01:00:00Z"


# who has written the field since


def managed(raw: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    """The workload with these entries in `managedFields`, and the annotation as a field of `altershield`."""
    own = {"f:metadata": {"f:annotations": {f"f:{PAUSED}": {}}}, **fields.pop("altershield", {})}
    entries = [
        {"manager": manager, "operation": "Update", "fieldsV1": owned}
        for manager, owned in {"altershield": own, **fields}.items()
    ]
    return {**raw, "metadata": {**raw["metadata"], "managedFields": entries}}


PARTITION = {"f:spec": {"f:updateStrategy": {"f:rollingUpdate": {"f:partition": {}}}}}
TYPE = {"f:spec": {"f:updateStrategy": {"f:type": {}}}}
IS_PAUSED = {"f:spec": {"f:paused": {}}}


@pytest.mark.parametrize(
    ("wanted", "fields", "own"),
    [
        (DEPLOYMENT, {"altershield": IS_PAUSED}, True),
        (DEPLOYMENT, {"kubectl": IS_PAUSED}, False),
        (DEPLOYMENT, {"altershield": IS_PAUSED, "argocd": IS_PAUSED}, False),
        (STATEFUL_SET, {"altershield": PARTITION, "kubectl": TYPE}, True),
        (STATEFUL_SET, {"altershield": TYPE, "kubectl": PARTITION}, False),
    ],
)
def test_field_that_somebody_else_owns_since_stays_although_its_value_is_the_same(
    wanted: list[dict[str, Any]], fields: dict[str, Any], own: bool
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    raw = {"metadata": {}, "spec": {"updateStrategy": strategy} if wanted is STATEFUL_SET else {}}
    held = managed(paused(raw, wanted), **fields)
    assert pausing.is_own(held, wanted) == own
    after = continued(held, wanted)
    assert after["spec"] == (raw["spec"] if own else held["spec"])
    assert PAUSED not in after["metadata"]["annotations"]


def test_workload_without_managed_fields_is_continued() -> None:
    held = paused({"metadata": {}, "spec": {}}, DEPLOYMENT)
    for entries in ([], [{"manager": "kubectl", "operation": "Update", "fieldsV1": IS_PAUSED}], ["?"]):
        held["metadata"]["managedFields"] = entries
        assert pausing.is_own(held, DEPLOYMENT)


@pytest.mark.parametrize(
    "value",
    [
        "no JSON",
        "{}",
        json.dumps({"time": "", "version": "", "reason": "", "changes": [{"path": "/spec/template", "value": 1}]}),
        json.dumps({"time": "", "version": "", "reason": "", "changes": [{"path": "/spec/replicas", "value": 3}]}),
    ],
)
def test_forged_annotation_changes_no_other_field(value: str) -> None:
    raw = {"metadata": {"annotations": {PAUSED: value}}, "spec": {"paused": True, "replicas": 3, "template": 1}}
    after = continued(raw, DEPLOYMENT)
    assert after["spec"] == raw["spec"]
    assert after["metadata"]["annotations"] == {}


def test_workload_without_annotation_is_not_changed() -> None:
    assert pausing.unpause({"metadata": {}, "spec": {"paused": True}}, DEPLOYMENT) == []


def test_every_kind_can_be_paused() -> None:
    for adapter in BY_NAME.values():
        assert all(each["op"] == "add" for each in adapter.pause(None))  # type: ignore[arg-type]
