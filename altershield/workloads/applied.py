"""What clients stored about the pod template of a workload, so that a rollback can restore it with the template.

- `kubectl apply`, and tools that work like it, store the manifest that they applied last in an annotation. They remove
  the fields that this manifest has and the next one lacks.
- Server-side apply stores the fields of each manager in `metadata.managedFields`. A manager that applies a manifest
  without a field removes the field, if no other manager owns it.

A rollback changes only the pod template. So only the part about the template is kept with a version and restored. The
rest stays as it is: labels, replicas, other fields of the spec, and the status.

Pure functions on objects in JSON.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation of `kubectl apply` (kubectl, pkg/util/apply.go)."""

OWN_MANAGER = "altershield"
"""The field manager of AlterShield's own writes: the beginning of its User-Agent."""

MAX_STORED = 128 * 1024
"""Bytes of an `Applied` in JSON. All annotations of an object may have 256 KiB together."""

MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations of an object, with their keys (apimachinery, pkg/api/validation/objectmeta.go)."""

Object = dict[str, Any]

_CLIENT_SIDE = "kubectl-client-side-apply"
_TEMPLATE = ("f:spec", "f:template")
_ANNOTATION = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


class Manager(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An entry of `managedFields`, reduced to its part about the template."""

    manager: str
    operation: str
    api_version: str
    template: Object | None = None
    """The fields that it owns in the template, in the format FieldsV1."""
    last_applied: bool = False
    """Whether it owns the annotation of `kubectl apply`."""

    def is_of(self, entry: Object) -> bool:
        """Whether this is the manager of an entry. Server-side apply has one entry for all API versions."""
        same = (entry.get("manager"), entry.get("operation")) == (self.manager, self.operation)
        return same and (self.operation == "Apply" or entry.get("apiVersion") == self.api_version)


class Applied(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What clients stored about a template."""

    template: Object | None = None
    """The template in the last applied manifest. None: the object has no such annotation, or its manifest has no
    template."""
    managers: tuple[Manager, ...] = ()

    @property
    def is_server_side(self) -> bool:
        """Whether a client owns fields of the template by server-side apply."""
        return any(each.operation == "Apply" and each.template is not None for each in self.managers)


class Entry(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An entry of `managedFields`, whose fields are not decoded."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"")

    @property
    def has_template(self) -> bool:
        """Whether its manager owns fields of the template. May be true for fields of the same name elsewhere."""
        return not self.subresource and b'"f:template"' in bytes(self.fields_v1)


def digest(annotations: Mapping[str, Any] | None, entries: Iterable[Entry]) -> str:
    """A digest that changes with the `Applied` of an object: 16 hex digits. Empty if there is nothing to keep."""
    found = hashlib.blake2b(digest_size=8)
    manifest = (annotations or {}).get(LAST_APPLIED)
    own = sorted((each for each in entries if each.has_template), key=_order)
    if not manifest and not own:
        return ""
    found.update(str(manifest or "").encode())
    for each in own:
        found.update(f"\0{each.manager}\0{each.operation}\0{each.api_version}\0".encode())
        found.update(each.fields_v1)
    return found.hexdigest()


def of(obj: Object) -> Applied | None:
    """What clients stored about the template of a workload. None while the template belongs to AlterShield: the field
    managers of a rollback are not restored yet, or nothing is known about them."""
    entries = _whole(obj)
    if any(each.get("manager") == OWN_MANAGER and _part(each, _TEMPLATE) is not None for each in entries):
        return None
    managers = (
        Manager(
            str(each.get("manager") or ""),
            str(each.get("operation") or ""),
            str(each.get("apiVersion") or ""),
            _part(each, _TEMPLATE),
            _part(each, _ANNOTATION) is not None,
        )
        for each in entries
    )
    return Applied(
        template_in((obj["metadata"].get("annotations") or {}).get(LAST_APPLIED)),
        # the API server sorts them by time, which a rollback changes
        tuple(
            sorted(
                (each for each in managers if each.template is not None or each.last_applied),
                key=_order,
            )
        ),
    )


def _order(each: Entry | Manager) -> tuple[str, str, str]:
    return each.manager, each.operation, each.api_version


def template_in(annotation: Any) -> Object | None:
    """The pod template in the value of the annotation of `kubectl apply`, or None."""
    manifest = _manifest(annotation)
    return _template(manifest) if manifest is not None else None


def encoded(applied: Applied) -> str:
    """The JSON form that is stored with a version; empty if it is too long."""
    text = msgspec.json.encode(applied).decode()
    return text if len(text.encode()) <= MAX_STORED else ""


def decoded(text: str | None) -> Applied | None:
    """The opposite of `encoded`. None: nothing is stored, or it cannot be read."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Applied)
    except (ValueError, RecursionError):
        return None


def last_applied(obj: Object, applied: Applied) -> str | None:
    """The annotation of `kubectl apply` for a workload whose template goes back to that of `applied`: the manifest of
    today with the template of then. None: the annotation is right as it is, or the result would be too long.

    Without an annotation, the result is a manifest with the template alone.
    """
    annotations = obj["metadata"].get("annotations") or {}
    stored = annotations.get(LAST_APPLIED)
    manifest = _manifest(stored)
    if manifest is None:
        if stored or applied.template is None:
            return None
        metadata = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
        manifest = {key: obj[key] for key in ("apiVersion", "kind") if key in obj} | {"metadata": metadata}
    if _template(manifest) == applied.template:
        return None
    spec = {key: value for key, value in (manifest.get("spec") or {}).items() if key != "template"}
    if applied.template is not None:
        spec["template"] = applied.template
    text = json.dumps({**manifest, "spec": spec}, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    others = sum(len(f"{key}{value}".encode()) for key, value in annotations.items() if key != LAST_APPLIED)
    return text if others + len(f"{LAST_APPLIED}{text}".encode()) <= MAX_ANNOTATIONS else None


def managed_fields(obj: Object, applied: Applied | None) -> list[Object] | None:
    """The `managedFields` of a workload whose template was released again by AlterShield: the managers of `applied` own
    the template as they did then. None: they do already.

    If nothing is known (`applied` is None), nobody owns the template's fields that AlterShield wrote. The next client
    that applies them then has no conflict.
    """
    before = obj["metadata"].get("managedFields") or []
    entries = deepcopy(before)
    whole = [each for each in entries if not each.get("subresource")]
    own = [each for each in whole if each.get("manager") == OWN_MANAGER]
    managers = applied.managers if applied is not None else ()
    time = max((str(each.get("time") or "") for each in own or whole), default="")
    for each in whole if applied is not None else own:
        _remove(each, _TEMPLATE)
    if [each for each in own if _remove(each, _ANNOTATION)]:
        api_version = str(own[0].get("apiVersion"))
        for each in [each for each in managers if each.last_applied] or [Manager(_CLIENT_SIDE, "Update", api_version)]:
            _set(_entry(entries, each, time), _ANNOTATION, {})
    for each in managers:
        if each.template is not None:
            _set(_entry(entries, each, time), _TEMPLATE, each.template)
    entries = [each for each in entries if each.get("fieldsV1") or each.get("subresource")]
    return entries if entries != before else None


def _whole(obj: Object) -> list[Object]:
    """The entries that are not about a subresource."""
    return [each for each in obj["metadata"].get("managedFields") or () if not each.get("subresource")]


def _entry(entries: list[Object], manager: Manager, time: str) -> Object:
    """The entry of a manager. A missing one is added, with this time."""
    found = next((each for each in entries if not each.get("subresource") and manager.is_of(each)), None)
    if found is None:
        found = {
            "manager": manager.manager,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            **({"time": time} if time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
        }
        entries.append(found)
    return found


def _part(entry: Object, path: Sequence[str]) -> Object | None:
    """The owned fields below `path`, or None."""
    fields: Any = entry.get("fieldsV1")
    for step in path:
        if not isinstance(fields, dict) or step not in fields:
            return None
        fields = fields[step]
    return fields if isinstance(fields, dict) else None


def _remove(entry: Object, path: Sequence[str]) -> bool:
    """Remove the fields below `path`, and the objects that are empty then. Returns whether there were any."""
    if _part(entry, path) is None:
        return False
    *parents, last = path
    chain = [entry["fieldsV1"]]
    for step in parents:
        chain.append(chain[-1][step])
    del chain[-1][last]
    for parent, step in zip(reversed(chain[:-1]), reversed(parents), strict=True):
        if not parent[step]:
            del parent[step]
    return True


def _set(entry: Object, path: Sequence[str], fields: Object) -> None:
    below = entry.setdefault("fieldsV1", {})
    for step in path[:-1]:
        below = below.setdefault(step, {})
    below[path[-1]] = fields


def _manifest(annotation: Any) -> Object | None:
    """The manifest in the annotation of `kubectl apply`; None if there is none, or if it is no object."""
    if not isinstance(annotation, str):
        return None
    try:
        found = msgspec.json.decode(annotation)  # unlike `json`, it refuses text that is no UTF-8
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("spec") or {}, dict) else None


def _template(manifest: Object) -> Object | None:
    found = (manifest.get("spec") or {}).get("template")
    return found if isinstance(found, dict) else None
