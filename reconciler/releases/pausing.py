"""The patches that pause the rollout of a workload, and that take back exactly this. Pure functions.

The annotation `paused` remembers which fields were changed, and their values before. Anybody who may change the
workload can write the annotation. So it decides nothing but the values of the fields that the adapter names.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from altershield.api.annotations import PAUSED
from altershield.api.json_patch import Operation
from altershield.workloads.adapter import Object

_ANNOTATION = "/metadata/annotations/" + PAUSED.replace("~", "~0").replace("/", "~1")
_MAX_REASON = 512


class Change(msgspec.Struct, frozen=True):
    """A field that was changed. `before` is null if the field did not exist."""

    path: str
    value: Any
    before: Any = None


class Marker(msgspec.Struct, frozen=True):
    """The value of the annotation, as JSON."""

    time: str
    """When the rollout was paused, in the format of Kubernetes."""
    version: str
    """The version that failed."""
    reason: str
    changes: tuple[Change, ...]


def pause(raw: Object, wanted: Sequence[Operation], *, version: str, reason: str, time: str) -> list[Operation]:
    """The patch that makes the changes `wanted` (each one an `add`) and remembers them; empty if the workload is paused
    already, or if its kind cannot be paused."""
    changes = [
        Change(str(each["path"]), each["value"], before)
        for each in wanted
        if not _covers(before := _get(raw, str(each["path"])), each["value"])
    ]
    if not changes or PAUSED in _annotations(raw):
        return []
    marker = Marker(time, version, reason[:_MAX_REASON], tuple(changes))
    operations: list[Operation] = []
    for change in changes:
        parent = change.path.rpartition("/")[0]
        if _get(raw, parent) is None:
            operations.append({"op": "add", "path": parent, "value": {}})
        operations.append({"op": "add", "path": change.path, "value": change.value})
    if not _annotations(raw):
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    operations.append({"op": "add", "path": _ANNOTATION, "value": msgspec.json.encode(marker).decode()})
    return operations


def unpause(raw: Object, wanted: Sequence[Operation]) -> list[Operation]:
    """The patch that takes back a pause. `wanted`: the changes that pause this workload. A field that somebody else has
    changed since stays as it is."""
    text = _annotations(raw).get(PAUSED)
    if text is None:
        return []
    operations: list[Operation] = []
    try:
        marker = msgspec.json.decode(text, type=Marker)
    except (ValueError, RecursionError):
        marker = Marker("", "", "", ())  # somebody changed the annotation: nothing is known about the values before
    known = {change.path: change for change in marker.changes}
    for each in wanted:
        path = str(each["path"])
        change = known.get(path)
        if change is None or not _covers(_get(raw, path), each["value"]):
            continue
        if change.before is None:
            operations.append({"op": "remove", "path": path})
        else:
            operations.append({"op": "replace", "path": path, "value": change.before})
    return [*operations, {"op": "remove", "path": _ANNOTATION}]


def _annotations(raw: Object) -> dict[str, Any]:
    return dict((raw.get("metadata") or {}).get("annotations") or {})


def _get(raw: Object, path: str) -> Any:
    """The value at a path without escapes; None if there is none."""
    found: Any = raw
    for part in path.split("/")[1:]:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _covers(value: Any, wanted: Any) -> bool:
    """Whether the value is the wanted one. The API server may have added defaults to it."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(_covers(value.get(key), below) for key, below in wanted.items())
    return bool(value == wanted)
