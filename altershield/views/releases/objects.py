"""ChangeWorkloads in the formats of kubectl: JSON, YAML and names."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.views.releases.model import StoredRelease

Object = dict[str, Any]


def objects(stored_releases: Sequence[StoredRelease]) -> list[Object]:
    """The objects from the API server, without `managedFields`, which kubectl does not show either."""
    found = []
    for each in stored_releases:
        obj: Object = {"apiVersion": CHANGE_WORKLOADS.api_version, "kind": CHANGE_WORKLOADS.kind}
        obj |= json.loads(each.raw)
        obj["metadata"].pop("managedFields", None)
        found.append(obj)
    return found


def as_list(items: Sequence[Object]) -> Object:
    """A `v1/List`, also for one object or none, so that scripts always find `.items`."""
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def to_json(obj: Object) -> str:
    return json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def to_yaml(obj: Object) -> str:
    return str(yaml.safe_dump(obj, sort_keys=True, allow_unicode=True, default_flow_style=False, width=float("inf")))


def names(stored_releases: Sequence[StoredRelease]) -> list[str]:
    """`changeworkload.app.ops.cloud.alipay.com/NAME`, as `kubectl get -o name` prints it."""
    prefix = f"{CHANGE_WORKLOADS.kind.lower()}.{CHANGE_WORKLOADS.group}"
    return [f"{prefix}/{each.metadata.name}" for each in stored_releases]
