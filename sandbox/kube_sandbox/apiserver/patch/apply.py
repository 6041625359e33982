"""Server-side apply, and the ownership of fields (`metadata.managedFields`).

The rules are those of apimachinery's pkg/util/managedfields and of structured-merge-diff's `merge.Updater`:

- An apply merges a configuration into the live object, and its manager owns every field that the configuration sets.
- An apply removes the fields that the same manager applied before and omits now, unless another manager owns them.
- It is a conflict when an apply changes the value of a field that another manager owns.
- An update owns the fields that it changes.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, reduce
from typing import Any

from kube_sandbox.apiserver.attributes import Object, copied
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.patch import managers, shapes, typed
from kube_sandbox.apiserver.patch.field_sets import EMPTY, Fields, Path, below, member
from kube_sandbox.apiserver.patch.managers import APPLY, UPDATE, Managed, Manager, Owned, identify
from kube_sandbox.apiserver.patch.shapes import Shape
from kube_sandbox.apiserver.schema import fields, types

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_NOT_TRACKED: Fields = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", member(name))
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
            "resourceVersion",
        )
    }
)  # fmt: skip


def check_applied(applied: Object, *, api_version: str, kind: str) -> None:
    """Raise StatusError 400 when the configuration has another kind or contains managedFields."""
    sent_version, sent_kind = applied.get("apiVersion") or "", applied.get("kind") or ""
    if (sent_version, sent_kind) != (api_version, kind):
        version = sent_version if "/" in sent_version else f"/{sent_version}"
        raise StatusError(400, f"invalid object type: {version}, Kind={sent_kind}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise StatusError(400, "metadata.managedFields must be nil")


def server_side_apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
    crd_schema: Object | None,
) -> Object:
    """The live object with the configuration applied, or a new object when `live` is None.

    Raises StatusError 409 with one cause per field that another manager owns (unless `force`), and 500 when the
    configuration does not fit the schema (the real server returns 500 too). An apply that changes nothing changes no
    timestamp.
    """
    api_version, kind = applied["apiVersion"], applied["kind"]
    shape = shapes.of_kind(api_version, kind, crd_schema)
    if wrong := typed.validate(shape, applied):
        listed = wrong[0] if len(wrong) == 1 else "\n".join(("errors:", *(f"  {problem}" for problem in wrong)))
        raise StatusError(500, f"failed to create typed patch object ({_name_and_kind(applied)}): {listed}", reason="")
    before = copied(live if live is not None else _empty(api_version, kind, crd_schema))
    managed = _decode_or_empty(before.get("metadata", {}).pop("managedFields", None))
    reset = _reset_fields(api_version, kind, subresource, crd_schema)
    if not managed and live is not None:
        # The fields that exist before the first apply belong to a separate manager.
        owner = identify("before-first-apply", UPDATE, api_version, subresource)
        managed = _update_managers(
            shape, _empty(api_version, kind, crd_schema), before, {}, owner, api_version, reset=reset, now=now
        )
    applier = identify(manager, APPLY, api_version, subresource)
    forced = force or (
        manager == "kubectl" and _conflicts_only_with_client_side_apply(shape, before, applied, managed, applier)
    )
    merged, managed = _apply_configuration(
        shape, before, applied, managed, applier, api_version, reset=reset, force=forced
    )
    if merged != before and applier in managed:
        managed[applier] = replace(managed[applier], time=now)
    if manager == "kubectl" and merged.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED):
        merged = _with_last_applied(merged, applied)
    return _with_managed(merged, managed)


def track_update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str,
    now: str,
    crd_schema: Object | None,
) -> Object:
    """The new object with its managedFields. The manager owns the fields that differ from the old object.

    `old` is None for a create. `new` may contain managedFields: kubectl moves ownership in this way, and an empty list
    resets it.
    """
    api_version, kind = new["apiVersion"], new["kind"]
    sent = dict(new.get("metadata") or {})
    sent_entries = sent.pop("managedFields", None)
    after = {**new, "metadata": sent}
    before, stored_entries = _empty(api_version, kind, crd_schema), None
    if old is not None:
        metadata = dict(old.get("metadata") or {})
        stored_entries = metadata.pop("managedFields", None)
        before = {**old, "metadata": metadata}
    if subresource:
        managed = _decode_or_empty(stored_entries)
    elif sent_entries in ([], [{}]):
        managed = {}
    else:
        managed = _decode_or_empty(sent_entries) or _decode_or_empty(stored_entries)
    if not managed and old is not None:
        return after
    shape = shapes.of_kind(api_version, kind, crd_schema)
    owner = identify(manager, UPDATE, api_version, subresource)
    reset = _reset_fields(api_version, kind, subresource, crd_schema)
    managed = _update_managers(shape, before, after, managed, owner, api_version, reset=reset, now=now)
    return _with_managed(after, managers.limit_updaters(managed))


def _empty(api_version: str, kind: str, crd_schema: Object | None) -> Object:
    """The object to compare a new object with: for a built-in kind Go's zero value, which contains some structs.
    Callers must not change it."""
    return {"apiVersion": api_version, "kind": kind} if crd_schema is not None else _zero(api_version, kind)


@cache
def _zero(api_version: str, kind: str) -> Object:
    return fields.decode({}, api_version=api_version, kind=kind)[0]


def _decode_or_empty(entries: Any) -> Managed:
    try:
        return managers.decode(entries)
    except (ValueError, AttributeError):
        return {}


def _with_managed(obj: Object, managed: Managed) -> Object:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
    if managed:
        metadata["managedFields"] = managers.encode(managed)
    return {**obj, "metadata": metadata}


def _name_and_kind(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    group, _, version = obj["apiVersion"].rpartition("/")
    gvk = f"{group}/{version}, Kind={obj['kind']}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {gvk}"


def _reset_fields(api_version: str, kind: str, subresource: str, crd_schema: Object | None) -> tuple[Path, ...]:
    """The fields that a write to this endpoint cannot change. Such a write therefore does not own them."""
    if crd_schema is not None:
        return (("f:metadata",), ("f:spec",)) if subresource == "status" else (("f:status",),)
    if subresource != "status":
        return (("f:status",),) if "status" in types.fields(types.model_of(api_version, kind) or "") else ()
    match kind:
        case "Deployment":
            return (("f:spec",), ("f:metadata", "f:labels"))
        case "Pod":
            return (("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences"))
        case "CustomResourceDefinition":
            return (("f:metadata",), ("f:spec",))
    return (("f:spec",),)


def _union(sets: Iterable[Fields]) -> Fields:
    return reduce(frozenset.union, sets, EMPTY)


def _remove_from_others(managed: Managed, changes: typed.Comparison, owner: Manager, *, force: bool) -> Managed:
    """Remove the changed and removed fields from all managers except `owner`. Raises StatusError 409 when this is a
    conflict and `force` is false."""
    conflicts = {
        manager: lost
        for manager, owned in managed.items()
        if manager != owner and (lost := owned.fields & (changes.modified | changes.added))
    }
    if conflicts and not force:
        message, details = managers.conflict_details(conflicts)
        raise StatusError(409, message, details=details)
    changed = changes.modified | changes.added | changes.removed
    return {
        manager: owned if manager == owner else replace(owned, fields=owned.fields - changed)
        for manager, owned in managed.items()
        if manager == owner or owned.fields - changed
    }


def _update_managers(
    shape: Shape,
    before: Object,
    after: Object,
    managed: Managed,
    owner: Manager,
    api_version: str,
    *,
    reset: tuple[Path, ...],
    now: str,
) -> Managed:
    changes = typed.compare(shape, before, after).without(reset)
    result = _remove_from_others(managed, changes, owner, force=True)
    changed = (changes.modified | changes.added) - _NOT_TRACKED
    kept = result.pop(owner).fields - changes.removed if owner in result else EMPTY
    if changed:
        # Entries for the scale subresource have no time, because the Scale object has no managedFields.
        result[owner] = Owned(kept | changed, api_version, "" if owner.subresource == "scale" else now)
    elif kept:
        result[owner] = replace(managed[owner], fields=kept)
    return result


def _apply_configuration(
    shape: Shape,
    before: Object,
    applied: Object,
    managed: Managed,
    owner: Manager,
    api_version: str,
    *,
    reset: tuple[Path, ...],
    force: bool,
) -> tuple[Object, Managed]:
    merged = typed.merge(shape, before, applied)
    last = managed[owner] if owner in managed else Owned(EMPTY, api_version)
    sets = typed.field_set(shape, applied)
    result = {**managed, owner: Owned(sets - below(sets, reset), api_version, last.time)}
    pruned = _pruned(shape, merged, last.fields, _union(owned.fields for owned in result.values()))
    result = _remove_from_others(result, typed.compare(shape, before, pruned).without(reset), owner, force=force)
    own = result[owner].fields - _NOT_TRACKED
    if own:
        result[owner] = replace(result[owner], fields=own)
    else:
        del result[owner]
    return pruned, result


def _pruned(shape: Shape, merged: Object, last: Fields, owned: Fields) -> Object:
    """The merged object without the fields that this manager applied last time and that no manager owns now."""
    if not last:
        return merged
    last = typed.with_named_parents(shape, last)
    without = typed.remove(shape, merged, last)
    everything = typed.with_named_parents(shape, typed.field_set(shape, merged))
    kept = typed.with_named_parents(shape, typed.field_set(shape, without)) | typed.with_named_parents(shape, owned)
    # The removal of a list item also removes the fields below it. Therefore compute the removal again, limited to the
    # fields that this manager owned.
    without = typed.remove(shape, merged, everything - kept)
    remaining = typed.with_named_parents(shape, typed.field_set(shape, without))
    result: Object = typed.remove(shape, merged, (everything - remaining) & last)
    return result


def _conflicts_only_with_client_side_apply(
    shape: Shape, before: Object, applied: Object, managed: Managed, owner: Manager
) -> bool:
    """Whether all conflicts are about fields that `kubectl apply` set last, according to its annotation. kubectl with
    server-side apply may then take these fields over."""
    text = ((before.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = json.loads(text or "null")
    except ValueError:
        return False
    if not isinstance(last, dict) or last.get("apiVersion") != before.get("apiVersion"):
        return False
    changes = typed.compare(shape, before, typed.merge(shape, before, applied))
    contested = _union(owned.fields for manager, owned in managed.items() if manager != owner)
    differs = typed.compare(shape, last, before)
    unchanged = typed.field_set(shape, last) - differs.modified - differs.added - differs.removed
    return (contested & (changes.modified | changes.added)) <= unchanged


def _with_last_applied(merged: Object, applied: Object) -> Object:
    metadata = dict(applied.get("metadata") or {})
    annotations = {n: v for n, v in (metadata.get("annotations") or {}).items() if n != LAST_APPLIED}
    metadata.pop("annotations", None)
    shown = {**applied, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
    text = json.dumps(shown, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    own = {**merged["metadata"]["annotations"], LAST_APPLIED: text}
    return {**merged, "metadata": {**merged["metadata"], "annotations": own}}
