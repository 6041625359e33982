"""The writes of `kubectl apply` for one object."""

import json
from typing import Any

Json = dict[str, Any]

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def created(manifest: Json) -> Json:
    """The object that `kubectl apply` creates."""
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _APPLIED: json.dumps(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def patch(live: Json, manifest: Json, *, merges_lists: bool) -> Json | None:
    """A patch with the result of `kubectl apply`. None where kubectl may send no patch, and where elements may have to
    be removed from a list although the API server `merges_lists`."""
    text = live["metadata"].get("annotations", {}).get(_APPLIED)
    if text is None:
        return None
    before = json.loads(text)
    if "namespace" not in manifest["metadata"]:
        before["metadata"].pop("namespace", None)  # kubectl adds it
    if not before["metadata"].get("annotations"):
        before["metadata"].pop("annotations", None)  # kubectl adds {}
    if before == manifest or (merges_lists and not _keeps_elements(before, manifest)):
        return None
    return _with_removals(before, created(manifest))


def _with_removals(before: Json, after: Json) -> Json:
    """`after`, with null for what only `before` has."""
    merged: Json = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        old = before.get(key)
        merged[key] = _with_removals(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _keeps_elements(before: object, after: object, *, inside: bool = False) -> bool:
    """Whether the lists of objects keep their elements, which have names or do not change, and whether everything
    `inside` the elements keeps its fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        return (not inside or before.keys() <= after.keys()) and all(
            _keeps_elements(value, after[key], inside=inside) for key, value in before.items() if key in after
        )
    if isinstance(before, list) and isinstance(after, list) and any(isinstance(each, dict) for each in before + after):
        return len(before) == len(after) and all(map(_is_same_element, before, after))
    return True


def _is_same_element(before: Json, after: Json) -> bool:
    named = "name" in before and before["name"] == after.get("name")
    return before == after or (named and _keeps_elements(before, after, inside=True))
