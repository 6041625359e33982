"""The CustomResourceDefinition of CloneSets (OpenKruise, apps.kruise.io/v1alpha1). Its schema has the fields that the
simulation reads, and keeps unknown ones. `create` and `delete` work at any time, on any API."""

import contextlib
from typing import Any

from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError, NotFoundError
from kube_base.resources import CLONE_SETS, CRDS
from kube_sandbox.cluster.kinds import Object

NAME = f"{CLONE_SETS.plural}.{CLONE_SETS.group}"

_FREE: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_COUNT = {"type": "integer", "format": "int32", "minimum": 0}
_COLUMNS = (
    ("Desired", "integer", ".spec.replicas"),
    ("Updated", "integer", ".status.updatedReplicas"),
    ("Updated_Ready", "integer", ".status.updatedReadyReplicas"),
    ("Ready", "integer", ".status.readyReplicas"),
    ("Total", "integer", ".status.replicas"),
    ("Age", "date", ".metadata.creationTimestamp"),
)


def _amount(default: int | str | None = None) -> Object:
    """The schema of a number of pods or a percentage."""
    schema: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return schema if default is None else {**schema, "default": default}


_SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            **_FREE,
            "required": ["selector", "template"],
            "properties": {
                "replicas": {**_COUNT, "default": 1},
                "selector": _FREE,
                "template": _FREE,
                "minReadySeconds": _COUNT,
                "revisionHistoryLimit": {**_COUNT, "default": 10},
                "progressDeadlineSeconds": _COUNT,
                "scaleStrategy": {
                    **_FREE,
                    "properties": {
                        "podsToDelete": {"type": "array", "items": {"type": "string"}},
                        "maxUnavailable": _amount(),
                    },
                },
                "updateStrategy": {
                    **_FREE,
                    "default": {},
                    "properties": {
                        "type": {
                            "type": "string",
                            "enum": ["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"],
                            "default": "ReCreate",
                        },
                        "partition": _amount(0),
                        "maxUnavailable": _amount("20%"),
                        "maxSurge": _amount(0),
                        "paused": {"type": "boolean"},
                    },
                },
            },
        },
        "status": _FREE,
    },
}
"""The defaults are those that OpenKruise's webhook sets."""


def manifest() -> Object:
    """The CustomResourceDefinition."""
    version = {
        "name": CLONE_SETS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.labelSelector",
            },
        },
        "additionalPrinterColumns": [{"name": name, "type": type_, "jsonPath": path} for name, type_, path in _COLUMNS],
    }
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": NAME},
        "spec": {
            "group": CLONE_SETS.group,
            "scope": "Namespaced",
            "names": {
                "plural": CLONE_SETS.plural,
                "singular": "cloneset",
                "kind": CLONE_SETS.kind,
                "listKind": "CloneSetList",
                "shortNames": ["clone"],
            },
            "versions": [version],
        },
    }


async def create(client: Client) -> None:
    """Create the CRD unless it exists. The API server serves CloneSets a moment later."""
    with contextlib.suppress(AlreadyExistsError):
        await client.create(CRDS, manifest())


async def delete(client: Client) -> None:
    """Delete the CRD and all CloneSets. The garbage collector deletes their pods if it has already discovered the CRD,
    which takes some seconds after its creation."""
    with contextlib.suppress(NotFoundError):
        await client.delete(CRDS, NAME)
