"""ChangeWorkloads in the formats of kubectl: JSON, YAML and names."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.views.names import resource_name
from altershield.views.releases.model import StoredRelease

Object = dict[str, Any]

_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")


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
    """Characters that could change what a terminal shows are escaped: users write the texts in objects."""
    text = json.dumps(obj, indent=4, sort_keys=True, ensure_ascii=False)
    return _NOT_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text) + "\n"


def to_yaml(obj: Object) -> str:
    """The same in YAML."""
    text = _yaml(obj, allow_unicode=True)
    return text if text.replace("\n", "").isprintable() else _yaml(obj, allow_unicode=False)


def _yaml(obj: Object, *, allow_unicode: bool) -> str:
    return str(
        yaml.safe_dump(obj, sort_keys=True, allow_unicode=allow_unicode, default_flow_style=False, width=float("inf"))
    )


def names(stored_releases: Sequence[StoredRelease]) -> list[str]:
    """`changeworkload.app.ops.cloud.alipay.com/NAME`, as `kubectl get -o name` prints it."""
    return [resource_name(CHANGE_WORKLOADS, each.metadata.name) for each in stored_releases]
