"""The CustomResourceDefinitions, generated from the types that the code uses for decoding."""

import copy
from typing import Any

from altershield.api import deletion_protection
from altershield.api.budgets import PodUnavailableBudget
from altershield.api.change_pod import ChangePod, PodState
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.flow_control import BreakerState, PodDeletionFlowControl
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.policy import DefensePolicy
from altershield.api.resources import (
    CHANGE_PODS,
    CHANGE_WORKLOADS,
    DEFENSE_POLICIES,
    OPS_CONFIG_INFOS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
    Resource,
)
from altershield.api.workload_requests import Verb
from command.install.structural_schema import Schema, structural_schema

CATEGORY = "altershield"

PROTECTED = {deletion_protection.LABEL: deletion_protection.Level.ALWAYS.value}
"""The labels that protect our CustomResourceDefinitions from deletion. The API server would delete all objects of a
deleted CustomResourceDefinition."""

_STATUS = ("STATUS", "string", ".status.status", 0)
_CREATED = ("CREATETIME", "string", ".spec.createTime", 0)

_ONLY_IN_SPECS = ("pattern", "x-kubernetes-validations", "default")
"""The keys that are removed from the schemas of copied policies. A copy may have values that only an older version of
the schema accepted."""

_PENDING: list[Schema] = [
    {
        "type": ConditionType.ACCEPTED.value,
        "status": "Unknown",
        "reason": "Pending",
        "message": "AlterShield has not processed the object yet",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
]

_STATUS_DEFAULTS: dict[Resource, Schema] = {
    CHANGE_WORKLOADS: {"status": WorkloadState.INIT.value},
    CHANGE_PODS: {"status": PodState.INIT.value, "message": PodState.INIT.value},
    OPS_CONFIG_INFOS: {"conditions": _PENDING},
    DEFENSE_POLICIES: {"conditions": _PENDING},
    POD_DELETION_FLOW_CONTROLS: {
        "windows": [{"used": 0}],  # without an interval, it counts for no rule
        "breaker": {"state": BreakerState.CLOSED.value},
    },
    POD_UNAVAILABLE_BUDGETS: {
        "totalReplicas": 0,
        "desiredAvailable": 0,
        "currentAvailable": 0,
        "unavailableAllowed": 0,
    },
}
"""The defaults of fields of `status` that columns show. A new object has them before a reconciler has processed it."""

_COLUMNS = {
    # fields of columns with the priority 0 are required or have a default, so that no cell is blank
    CHANGE_WORKLOADS: (
        _STATUS,
        _CREATED,
        ("KIND", "string", ".spec.workloadRef.kind", 1),
        ("WORKLOAD", "string", ".spec.serviceName", 1),
        ("POLICY", "string", ".spec.policy.name", 1),
        ("VERIFIED", "string", '.status.conditions[?(@.type=="Verified")].status', 1),
        ("REASON", "string", '.status.conditions[?(@.type=="Verified")].reason', 1),
        ("ROLLEDBACK", "string", '.status.conditions[?(@.type=="RolledBack")].status', 1),
        ("UPDATETIME", "string", ".status.updateTime", 1),
    ),
    CHANGE_PODS: (
        _STATUS,
        ("MESSAGE", "string", ".status.message", 0),
        _CREATED,
        ("PODS", "string", ".spec.podInfos[*].pod", 1),
        ("VERIFIED", "string", '.status.conditions[?(@.type=="Verified")].status', 1),
        ("UPDATETIME", "string", ".status.updateTime", 1),
    ),
    OPS_CONFIG_INFOS: (
        ("AGE", "date", ".metadata.creationTimestamp", 0),
        ("TYPE", "string", ".spec.type", 1),
        ("ENABLE", "boolean", ".spec.enable", 1),
        ("CONTENT", "string", ".spec.content", 1),
        ("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status', 1),
    ),
    DEFENSE_POLICIES: (
        ("MODE", "string", ".spec.mode", 0),
        ("ONFAILURE", "string", ".spec.onFailure", 0),
        ("PRIORITY", "integer", ".spec.priority", 0),
        ("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status', 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
        ("CHECKS", "string", ".spec.checks[*].name", 1),
        ("SHADOWED", "string", '.status.conditions[?(@.type=="Shadowed")].status', 1),
    ),
    POD_DELETION_FLOW_CONTROLS: (
        ("MODE", "string", ".spec.mode", 0),
        ("BREAKER", "string", ".status.breaker.state", 0),
        ("INTERVAL", "string", ".spec.limitRules[0].interval", 0),
        ("USED", "integer", ".status.windows[0].used", 0),
        ("LIMIT", "integer", ".spec.limitRules[0].limit", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
        ("SINCE", "string", ".status.breaker.since", 1),
        ("BREAKERMODE", "string", ".spec.breaker.mode", 1),
        ("TOPSOURCE", "string", ".status.topSources[0].by", 1),
    ),
    POD_UNAVAILABLE_BUDGETS: (
        ("MODE", "string", ".spec.mode", 0),
        ("ALLOWED", "integer", ".status.unavailableAllowed", 0),
        ("CURRENT", "integer", ".status.currentAvailable", 0),
        ("DESIRED", "integer", ".status.desiredAvailable", 0),
        ("TOTAL", "integer", ".status.totalReplicas", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
        ("MIN-AVAILABLE", "string", ".spec.minAvailable", 1),
        ("MAX-UNAVAILABLE", "string", ".spec.maxUnavailable", 1),
        ("TARGET", "string", ".spec.targetRef.name", 1),
        ("OPERATIONS", "string", ".spec.protectOperations", 1),
    ),
}


def crds() -> list[dict[str, Any]]:
    """The CustomResourceDefinition objects (apiextensions.k8s.io/v1)."""
    return [
        _crd(CHANGE_WORKLOADS, "changeworkload", ["cw"], ChangeWorkload, tuple(WorkloadState)),
        _crd(CHANGE_PODS, "changepod", ["cp"], ChangePod, tuple(PodState)),
        _crd(OPS_CONFIG_INFOS, "opsconfiginfo", ["oci"], OpsConfigInfo, ()),
        _crd(DEFENSE_POLICIES, "defensepolicy", ["dp"], DefensePolicy, ()),
        _crd(POD_DELETION_FLOW_CONTROLS, "poddeletionflowcontrol", ["pdfc"], PodDeletionFlowControl, ()),
        _crd(POD_UNAVAILABLE_BUDGETS, "podunavailablebudget", ["pub"], PodUnavailableBudget, ()),
    ]


def _crd(
    resource: Resource,
    singular: str,
    short_names: list[str],
    type_: type,
    states: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}", "labels": PROTECTED},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": singular,
                "shortNames": short_names,
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": type_, "jsonPath": path, **({"priority": 1} if wide else {})}
                        for name, type_, path, wide in _COLUMNS[resource]
                    ],
                    "schema": {"openAPIV3Schema": _object_schema(resource, type_, states)},
                }
            ],
        },
    }


def _object_schema(resource: Resource, type_: type, states: tuple[str, ...]) -> Schema:
    """The schema of an object with `spec` and `status`. `states`: the states of an object that AlterShield creates."""
    schema = structural_schema(type_)
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    for copied in (spec["properties"].get("policy"), status["properties"].get("accepted")):
        if copied is not None:
            _lift_restrictions(copied)
    if resource == POD_UNAVAILABLE_BUDGETS:
        for field in spec["properties"].values():
            field.pop("nullable", None)  # for the rules, a stored null would be a field that is set
    spec.pop("default", None)  # it is required
    _drop_defaults(status)
    if states:  # only AlterShield creates these objects
        _drop_defaults(spec)
        status["properties"]["status"]["enum"] = ["", *map(str, states)]
    status["default"] = copy.deepcopy(_STATUS_DEFAULTS[resource])  # in YAML, shared objects are anchors
    for name, default in _STATUS_DEFAULTS[resource].items():
        status["properties"][name]["default"] = copy.deepcopy(default)
    if "request" in status["properties"]:
        request = status["properties"]["request"]
        del request["nullable"]  # a stored null would be a request without fields for the admission policy
        request["properties"]["verb"]["enum"] = list(map(str, Verb))
    return {
        "type": "object",
        "description": schema["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def _drop_defaults(schema: Schema) -> None:
    """Remove all defaults but those of fields with a fixed set of values: nobody set them."""
    if not isinstance(schema.get("default"), str):
        schema.pop("default", None)
    for below in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(below, dict):
            _drop_defaults(below)


def _lift_restrictions(schema: Schema) -> None:
    """Remove the keys of `_ONLY_IN_SPECS` from the schema and from all schemas in it."""
    for key in _ONLY_IN_SPECS:
        schema.pop(key, None)
    for below in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(below, dict):
            _lift_restrictions(below)
