"""The CustomResourceDefinitions, generated from the types that the code uses for decoding."""

import copy
from typing import Any

from altershield.api import deletion_protection
from altershield.api.kinds import Kind
from altershield.api.workload_requests import Verb
from command.install.structural_schema import Schema, structural_schema
from reconciler.manager import SUBJECTS

CATEGORY = "altershield"

PROTECTED = {deletion_protection.LABEL: deletion_protection.Level.ALWAYS.value}
"""The labels that protect our CustomResourceDefinitions from deletion. The API server would delete all objects of a
deleted CustomResourceDefinition."""

_ONLY_IN_SPECS = ("pattern", "x-kubernetes-validations", "default")
"""The keys that are removed from the schemas of copied policies. A copy may have values that only an older version of
the schema accepted."""


def crds() -> list[dict[str, Any]]:
    """The CustomResourceDefinition objects (apiextensions.k8s.io/v1) of the kinds of all subjects."""
    return [_crd(kind) for subject in SUBJECTS for kind in subject.kinds]


def _crd(kind: Kind) -> dict[str, Any]:
    resource = kind.resource
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name, "labels": PROTECTED},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [kind.short_name],
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
                        for name, type_, path, wide in kind.columns
                    ],
                    **({"selectableFields": selectable} if selectable else {}),
                    "schema": {"openAPIV3Schema": _object_schema(kind)},
                }
            ],
        },
    }


def _object_schema(kind: Kind) -> Schema:
    """The schema of an object with `spec` and `status`."""
    schema = structural_schema(kind.type)
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    for copied in (spec["properties"].get("policy"), status["properties"].get("accepted")):
        if copied is not None:
            _lift_restrictions(copied)
    if not kind.nullable:
        for field in spec["properties"].values():
            field.pop("nullable", None)
    spec.pop("default", None)  # it is required
    _drop_defaults(status)
    if kind.states:  # only AlterShield creates these objects
        _drop_defaults(spec)
        status["properties"]["status"]["enum"] = ["", *map(str, kind.states)]
    status["default"] = copy.deepcopy(dict(kind.status))  # in YAML, shared objects are anchors
    for name, default in kind.status.items():
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
