"""What `kubectl apply` sends for a manifest, so that a dry run gets the answer of the apply that follows it. Pure
functions.

Without `--server-side`, kubectl compares three objects: the manifest that was applied before (an annotation), the new
manifest, and the live object. It sends what the new manifest has, and deletes what only the one before had (kubectl,
pkg/cmd/apply/patcher.go).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from altershield.gates.fields.list_keys import MERGE_KEYS
from altershield.workloads.applied import LAST_APPLIED

Object = dict[str, Any]

SERVER_SIDE, CLIENT_SIDE = "kubectl", "kubectl-client-side-apply"
"""The field managers of `kubectl apply`."""

_RETAINED = frozenset({"strategy", "volumes", "resourceClaims"})
"""The fields of which kubectl also deletes what neither manifest has, if they change (`patchStrategy: retainKeys`)."""


def is_server_side(live: Object) -> bool:
    """Whether the last `kubectl apply` was `kubectl apply --server-side`."""
    times = dict.fromkeys((SERVER_SIDE, CLIENT_SIDE), "")
    for each in live["metadata"].get("managedFields") or ():
        manager, applies = each.get("manager"), each.get("operation") == "Apply"
        if not each.get("subresource") and manager in times and applies is (manager == SERVER_SIDE):
            times[manager] = max(times[manager], each.get("time") or "")
    return times[SERVER_SIDE] > times[CLIENT_SIDE]


def client_side(manifest: Object, live: Object, *, strategic: bool) -> Object:
    """The patch of `kubectl apply`: a strategic merge patch, or a merge patch for a kind of a CRD. That of kubectl has
    the same effect, but leaves out what does not change."""
    wanted = {key: value for key, value in manifest.items() if key != "status"}
    metadata = wanted["metadata"]
    wanted["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return _map(_last_applied(live), wanted, live, "", strategic=strategic)


def _last_applied(live: Object) -> Object:
    """The manifest that was applied before; empty if it is not known."""
    try:
        found = json.loads((live["metadata"].get("annotations") or {}).get(LAST_APPLIED, "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _map(before: Object, wanted: Object, live: Object, field: str, *, strategic: bool) -> Object:
    patch: Object = dict.fromkeys(key for key in before if key not in wanted and key != "status")
    for key, value in wanted.items():
        known, present = before.get(key), live.get(key)
        if isinstance(value, dict):
            patch[key] = _map(_dict(known), value, _dict(present), key, strategic=strategic)
        elif strategic and isinstance(value, list) and _has_names(key, value):
            patch |= _list(key, known, value, present)
        else:
            patch[key] = value
    if strategic and field in _RETAINED and not _is_in(wanted, live):
        patch["$retainKeys"] = [key for key, value in wanted.items() if value is not None]
    return patch


def _list(field: str, before: Any, wanted: list[Object], live: Any) -> Object:
    """The members of a patch that bring a list of named elements up to date."""
    name = MERGE_KEYS[field][0]
    known, present = _by_name(before, name), _by_name(live, name)
    order = [each[name] for each in wanted]
    merged = [
        _map(known.get(each[name], {}), each, present.get(each[name], {}), field, strategic=True) for each in wanted
    ]
    deleted = [{"$patch": "delete", name: each} for each in known if each not in order]
    return {field: [*merged, *deleted], f"$setElementOrder/{field}": [{name: each} for each in order]}


def _has_names(field: str, elements: Iterable[Any]) -> bool:
    """Whether Kubernetes merges the list element by element. A list with an element without a name is sent as it is, so
    that the API server says what is wrong."""
    names = MERGE_KEYS.get(field)
    return names is not None and all(isinstance(each, dict) and _is_name(each.get(names[0])) for each in elements)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int)


def _by_name(elements: Any, name: str) -> Mapping[Any, Object]:
    found = elements if isinstance(elements, list) else []
    return {each[name]: each for each in found if isinstance(each, dict) and _is_name(each.get(name))}


def _dict(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def _is_in(wanted: Any, live: Any) -> bool:
    """Whether the live value has everything that is wanted."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_is_in(value, live.get(key)) for key, value in wanted.items())
    return bool(wanted == live)
