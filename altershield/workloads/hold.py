"""The patches that pause the rollout of a workload, and that take back exactly this pause. Pure functions.

The annotation `paused` has the changed fields, with their values before. Anybody who may change the workload can write
the annotation. So it decides only the values of the fields that the adapter names.

A field is restored only if nobody else has written it since. If somebody continued the rollout and paused it again, the
value of the field does not show this. `metadata.managedFields` shows it: a field that AlterShield wrote last belongs to
the same manager as the annotation.
"""

from collections.abc import Iterator, Sequence
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
    changes: tuple[Change, ...] = ()
    until: str = ""
    """When the pause ends by itself, in the same format; empty: it does not end by itself."""


def pause(raw: Object, wanted: Sequence[Operation], marker: Marker) -> list[Operation]:
    """The patch that makes the changes `wanted` (each one an `add`) and stores them with `marker` in the annotation;
    empty if the workload is paused already, or if its kind cannot be paused."""
    changes = [
        Change(str(each["path"]), each["value"], before)
        for each in wanted
        if not _covers(before := _get(raw, str(each["path"])), each["value"])
    ]
    if not changes or PAUSED in _annotations(raw):
        return []
    marker = msgspec.structs.replace(marker, reason=marker.reason[:_MAX_REASON], changes=tuple(changes))
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
    if PAUSED not in _annotations(raw):
        return []
    operations: list[Operation] = []
    for change in _own_changes(raw, wanted):
        if change.before is None:
            operations.append({"op": "remove", "path": change.path})
        else:
            operations.append({"op": "replace", "path": change.path, "value": change.before})
    return [*operations, {"op": "remove", "path": _ANNOTATION}]


def is_own(raw: Object, wanted: Sequence[Operation]) -> bool:
    """Whether a change in the annotation of the workload is still in force, and nobody else has written its field
    since."""
    return bool(_own_changes(raw, wanted))


def _own_changes(raw: Object, wanted: Sequence[Operation]) -> list[Change]:
    """The changes in the annotation that are still in force, and that nobody else has written since."""
    try:
        marker = msgspec.json.decode(_annotations(raw).get(PAUSED, ""), type=Marker)
    except (ValueError, RecursionError, TypeError):
        return []  # somebody changed the annotation: nothing is known about the values before
    known = {change.path: change for change in marker.changes}
    found = []
    for each in wanted:
        change = known.get(str(each["path"]))
        if change is None or not _covers(_get(raw, change.path), each["value"]):
            continue
        if not _has_other_manager(raw, msgspec.structs.replace(change, value=each["value"])):
            found.append(change)
    return found


def _has_other_manager(raw: Object, change: Change) -> bool:
    """Whether another manager than that of the annotation owns a value that the change wrote."""
    entries = [each for each in (raw.get("metadata") or {}).get("managedFields") or () if isinstance(each, dict)]
    own = {_manager(each) for each in entries if _owns(each, ("metadata", "annotations", PAUSED))}
    parts = tuple(change.path.split("/")[1:])
    written = [(*parts, *below) for below in _changed(change.value, change.before)]
    return bool(own) and any(_manager(each) not in own and _owns(each, path) for each in entries for path in written)


def _manager(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource")


def _owns(entry: dict[str, Any], path: Sequence[str]) -> bool:
    """Whether an entry of `managedFields` owns the field."""
    found: Any = entry.get("fieldsV1")
    for part in path:
        found = found.get(f"f:{part}") if isinstance(found, dict) else None
    return found is not None


def _changed(value: Any, before: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the plain values in `value` that `before` does not have."""
    if not isinstance(value, dict):
        if value != before:
            yield ()
        return
    for key, below in value.items():
        for path in _changed(below, before.get(key) if isinstance(before, dict) else None):
            yield key, *path


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
