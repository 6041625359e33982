"""The CRDs match the types and have structural schemas."""

from typing import Any, get_type_hints

import msgspec
import pytest

from altershield.api import change_pod, ops_config_info
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from command.install.crds import crds
from kube_base.meta import ObjectMeta
from kube_sandbox.apiserver.printers.tables import find
from kube_sandbox.apiserver.schema import custom
from reconciler.manager import SUBJECTS

CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crds()}
TYPES = {kind.resource.kind: kind.type for subject in SUBJECTS for kind in subject.kinds}
STRUCTURAL = {
    "type", "format", "properties", "required", "items", "maxItems", "minItems", "maxLength", "minLength",
    "minimum", "maximum", "enum", "nullable", "description", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "maxProperties", "additionalProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string",
    "pattern", "default", "x-kubernetes-map-type", "x-kubernetes-validations",
}  # fmt: skip


def schema(kind: str) -> Any:
    return CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(value: dict[str, Any]) -> Any:
    yield value
    for child in value.get("properties", {}).values():
        yield from nodes(child)
    if "items" in value:
        yield from nodes(value["items"])


@pytest.mark.parametrize("kind", CRDS)
def test_every_node_of_the_schemas_is_structural_and_has_a_limit(kind: str) -> None:
    for node in nodes(schema(kind)):
        assert node.keys() <= STRUCTURAL
        assert ("type" in node) != ("x-kubernetes-int-or-string" in node)
    for part in ("spec", "status"):
        for node in nodes(schema(kind)["properties"][part]):
            if node.get("type") == "array":
                assert "maxItems" in node
            if "additionalProperties" in node:
                assert "maxProperties" in node
            if node.get("type") == "string" and "description" not in node:
                assert "maxLength" in node or "enum" in node, node


@pytest.mark.parametrize("kind", CRDS)
def test_schemas_have_exactly_the_fields_that_the_code_decodes(kind: str) -> None:
    types = get_type_hints(TYPES[kind])
    for part in ("spec", "status"):
        fields = {field.encode_name for field in msgspec.structs.fields(types[part])}
        assert set(schema(kind)["properties"][part]["properties"]) == fields


def test_names_and_categories_of_the_crds_are_fixed() -> None:
    assert {crd["metadata"]["name"] for crd in CRDS.values()} >= {
        "changeworkloads.app.ops.cloud.alipay.com",
        "changepods.app.ops.cloud.alipay.com",
        "opsconfiginfoes.app.ops.cloud.alipay.com",
        "defensepolicies.app.ops.cloud.alipay.com",
        "poddeletionflowcontrols.app.ops.cloud.alipay.com",
        "podunavailablebudgets.app.ops.cloud.alipay.com",
        "releasewindows.app.ops.cloud.alipay.com",
        "releasefreezes.app.ops.cloud.alipay.com",
        "releaselimits.app.ops.cloud.alipay.com",
        "fieldguards.app.ops.cloud.alipay.com",
    }
    for crd in CRDS.values():
        assert crd["spec"]["names"]["categories"] == ["altershield"]
        assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("ChangeWorkload", ["STATUS", "CREATETIME"]),
        ("ChangePod", ["STATUS", "MESSAGE", "CREATETIME"]),
        ("OpsConfigInfo", ["AGE"]),
        ("DefensePolicy", ["MODE", "ONFAILURE", "PRIORITY", "ACCEPTED", "AGE"]),
        ("ReleaseWindow", ["TYPE", "OPEN", "MODE", "ACCEPTED", "AGE"]),
        ("ReleaseFreeze", ["REASON", "MODE", "AGE"]),
        ("ReleaseLimit", ["MODE", "ACCEPTED", "AGE"]),
        ("ReleaseOverride", ["TARGET", "USES", "USED", "AGE"]),
        ("FieldGuard", ["MODE", "ACCEPTED", "AGE"]),
        ("PodDeletionFlowControl", ["MODE", "BREAKER", "INTERVAL", "USED", "LIMIT", "AGE"]),
        ("PodUnavailableBudget", ["MODE", "ALLOWED", "CURRENT", "DESIRED", "TOTAL", "AGE"]),
    ],
)
def test_printer_columns_are_those_of_the_walkthrough(kind: str, columns: list[str]) -> None:
    shown = CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in shown if not column.get("priority")] == columns


def test_releases_are_selected_by_their_state_and_phase() -> None:
    selectable = {
        kind: [field["jsonPath"] for field in found]
        for kind, crd in CRDS.items()
        if (found := crd["spec"]["versions"][0].get("selectableFields")) is not None
    }
    assert selectable == {"ChangeWorkload": [".status.status", ".status.rollout.phase"]}


FRESH: dict[str, dict[str, Any]] = {  # the required fields
    "ChangeWorkload": {"createTime": "2026-11-27 10:00:00"},
    "ChangePod": {"createTime": "2026-11-27 10:00:00"},
    "OpsConfigInfo": {"type": "isBranch"},
    "ReleaseWindow": {"type": "Deny", "schedules": [{"weekly": {"days": ["Sat"]}}]},
    "ReleaseFreeze": {"reason": "an incident"},
    "ReleaseLimit": {"concurrent": 1},
    "ReleaseOverride": {"reason": "an emergency", "target": {"kind": "Deployment", "name": "web"}, "gates": ["Freeze"]},
    "FieldGuard": {"rules": [{"name": "images", "paths": ["spec.containers[*].image"]}]},
    "PodDeletionFlowControl": {"limitRules": [{"interval": "1m", "limit": 0}]},
    "PodUnavailableBudget": {"selector": {}, "maxUnavailable": 0},
}


@pytest.mark.parametrize("kind", CRDS)
@pytest.mark.parametrize("status", [None, {}])
def test_no_cell_of_a_new_object_is_blank(kind: str, status: dict[str, Any] | None) -> None:
    metadata = {"name": "new", "creationTimestamp": "2026-11-27T10:00:00Z"}
    obj: dict[str, Any] = {"metadata": metadata, "spec": dict(FRESH.get(kind, {}))}
    if status is not None:
        obj["status"] = status
    custom.apply_defaults(obj, schema(kind))
    for column in CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        if not column.get("priority"):
            found = find(obj, column["jsonPath"])
            assert found, column
            assert found[0] not in (None, ""), column


def test_defaults_of_specs_are_those_of_the_code() -> None:
    assert defaults("PodUnavailableBudget") == {
        "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESTART"],
        "unhealthyPodPolicy": "AlwaysAllow",
        "mode": "Enforce",
    }
    assert defaults("PodDeletionFlowControl") == {
        "mode": "Enforce",
        "warnPercent": 80,
        "onError": "Deny",
        "breaker": {},
    }
    assert defaults("DefensePolicy") == {
        "priority": 0, "mode": "enforce", "onFailure": "suspend", "onStartFailure": "rollback",
        "maxStartSeconds": 1800, "unschedulableSeconds": 600, "settleRestarts": 3,
    }, "for other fields, an option of the reconciler or a setting applies"  # fmt: skip
    assert defaults("OpsConfigInfo") == {"enable": False}
    assert defaults("ChangeWorkload") == defaults("ChangePod") == {}, "only AlterShield creates these objects"


def defaults(kind: str) -> dict[str, Any]:
    fields = schema(kind)["properties"]["spec"]["properties"]
    return {name: field["default"] for name, field in fields.items() if "default" in field}


def test_copies_of_a_policy_have_no_patterns_rules_or_defaults() -> None:
    copies = [
        schema("ChangeWorkload")["properties"]["spec"]["properties"]["policy"],
        schema("DefensePolicy")["properties"]["status"]["properties"]["accepted"],
    ]
    for copy in copies:
        for node in nodes(copy):
            assert not node.keys() & {"pattern", "x-kubernetes-validations", "default"}


def test_encoded_field_names_are_those_of_the_first_release() -> None:
    status = change_pod.ChangePodStatus(post_timeout_threshold=120, pre_submit_time_unix=5, change_pod_id="n")
    assert msgspec.to_builtins(status) == {"postTimeOutThreshold": 120, "preSubmitTimeUnix": 5, "changePodId": "n"}
    pod = PodInfo(pod="p", app="a", host_name="p", namespace="n", work_space="default", ip="10.0.0.1")
    assert msgspec.to_builtins(pod) == {
        "pod": "p", "app": "a", "hostName": "p", "namespace": "n", "workSpace": "default", "ip": "10.0.0.1",
    }  # fmt: skip


def test_encoded_objects_have_their_kind() -> None:
    setting = ops_config_info.OpsConfigInfo(
        ObjectMeta(name="branch"), ops_config_info.OpsConfigInfoSpec("isBranch", enable=False)
    )
    encoded = msgspec.to_builtins(setting)
    assert encoded["kind"] == "OpsConfigInfo"
    assert encoded["apiVersion"] == "app.ops.cloud.alipay.com/v1alpha1"
    assert encoded["spec"]["enable"] is False


def test_conditions_are_a_list_map_with_key_type() -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(Condition)}
    for kind in CRDS:
        conditions = schema(kind)["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
        assert set(conditions["items"]["properties"]) == fields
