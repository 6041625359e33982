"""Takes the held fields of a release in steps from AlterShield's field manager. Pure functions.

The write that ends a hold has the user's own values, so the API server takes AlterShield for an owner of these fields.
The next server-side apply by their owner with other values would have a conflict.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from altershield.api.annotations import ROLLOUT
from altershield.workloads.applied import OWN_MANAGER

Object = dict[str, Any]


def freed(raw: Object, paths: Sequence[str]) -> list[Object] | None:
    """The `managedFields` of a workload without AlterShield's entries about the fields at `paths` (`/spec/paused`) and
    about the annotation of the hold. None: there are none."""
    before = raw["metadata"].get("managedFields") or []
    entries = deepcopy(before)
    found = False
    for entry in entries:
        if entry.get("manager") != OWN_MANAGER or entry.get("subresource"):
            continue
        for path in paths:
            found |= _without(entry.get("fieldsV1"), [f"f:{part}" for part in path.split("/")[1:]])
        found |= _without(entry.get("fieldsV1"), ["f:metadata", "f:annotations", f"f:{ROLLOUT}"])
    return [entry for entry in entries if entry.get("fieldsV1") or entry.get("subresource")] if found else None


def left(raw: Object, paths: Sequence[str]) -> list[Object] | None:
    """The same for a workload that is not held any more. None: there are none, or the fields are held still, by a pause
    after a failure too."""
    annotations = raw["metadata"].get("annotations") or {}
    return None if ROLLOUT in annotations else freed(raw, paths)


def _without(fields: Any, path: Sequence[str]) -> bool:
    """Remove a field, and the objects that are empty then. Returns whether it was there."""
    first, *rest = path
    if not isinstance(fields, dict) or first not in fields:
        return False
    if not rest:
        del fields[first]
        return True
    found = _without(fields[first], rest)
    if found and not (set(fields[first]) - {"."}):
        del fields[first]
    return found
