"""Validation of metadata (names, labels, annotations, owners, finalizers, managed fields) and of label selectors.

The rules are those of apimachinery, pkg/api/validation and pkg/apis/meta/v1/validation.
"""

from collections.abc import Callable, Mapping, Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes

_MAX_ANNOTATIONS = 256 * 1024
_UNCHANGEABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

NameRule = Callable[[str], list[str]]


def new_metadata(metadata: Object, *, namespaced: bool, name_rule: NameRule) -> Causes:
    """Validate the metadata of a new object."""
    if prefix := metadata.get("generateName"):
        yield from causes.invalid_each("metadata.generateName", prefix, name_rule(texts.name_prefix(prefix)))
    if name := metadata.get("name"):
        yield from causes.invalid_each("metadata.name", name, name_rule(name))
    else:
        yield causes.required("metadata.name", "name or generateName is required")
    namespace = metadata.get("namespace")
    if namespaced and not namespace:
        yield causes.required("metadata.namespace")
    elif namespaced:
        yield from causes.invalid_each("metadata.namespace", namespace, texts.label_1123(namespace or ""))
    elif namespace:
        yield causes.forbidden("metadata.namespace", "not allowed on this type")
    yield from causes.non_negative("metadata.generation", metadata.get("generation"))
    yield from labels(metadata.get("labels"), "metadata.labels")
    yield from annotations(metadata.get("annotations"), "metadata.annotations")
    yield from _owners(metadata.get("ownerReferences") or (), "metadata.ownerReferences")
    yield from _finalizers(metadata.get("finalizers") or (), "metadata.finalizers")
    yield from _managed_fields(metadata.get("managedFields") or (), "metadata.managedFields")


def changed_metadata(metadata: Object, old: Object) -> Causes:
    """Validate the metadata of an updated object."""
    if old.get("deletionTimestamp"):
        added = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(causes.shown(name) for name in added)
            yield causes.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}",
            )
    for field in _UNCHANGEABLE:
        new_value = metadata.get(field) or ("" if field in ("name", "namespace", "uid") else None)
        old_value = old.get(field) or ("" if field in ("name", "namespace", "uid") else None)
        yield from causes.immutable(f"metadata.{field}", new_value, old_value)
    yield from labels(metadata.get("labels"), "metadata.labels")
    yield from annotations(metadata.get("annotations"), "metadata.annotations")
    yield from _owners(metadata.get("ownerReferences") or (), "metadata.ownerReferences")
    yield from _managed_fields(metadata.get("managedFields") or (), "metadata.managedFields")


def labels(found: Mapping[str, str] | None, path: str) -> Causes:
    for key, value in sorted((found or {}).items()):
        yield from label_key(key, path)
        yield from causes.invalid_each(path, value, texts.label_value(value))


def label_key(key: str, path: str) -> Causes:
    yield from causes.invalid_each(path, key, texts.qualified_name(key))


def annotations(found: Mapping[str, str] | None, path: str) -> Causes:
    for key in sorted(found or {}):
        yield from causes.invalid_each(path, key, texts.qualified_name(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in (found or {}).items()) > _MAX_ANNOTATIONS:
        yield causes.too_long(path, _MAX_ANNOTATIONS)


def _owners(owners: Sequence[Object], path: str) -> Causes:
    controller = ""
    for owner in owners:
        group, _, version = (owner.get("apiVersion") or "").rpartition("/")
        if not version:
            yield causes.invalid(f"{path}.apiVersion", owner.get("apiVersion") or "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield causes.invalid(f"{path}.{field}", "", "must not be empty")
        if (group, version, owner.get("kind")) == ("", "v1", "Event"):
            yield causes.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            current = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                yield causes.invalid(
                    path,
                    list(owners),
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}",
                )
            controller = controller or current


def _finalizers(finalizers: Sequence[str], path: str) -> Causes:
    for name in finalizers:
        yield from causes.invalid_each(path, name, texts.qualified_name(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield causes.invalid(path, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set")


def standard_finalizers(finalizers: Sequence[str]) -> Causes:
    """Validate that finalizers are standard or qualified names, as most built-in kinds require
    (pkg/apis/core/validation)."""
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion"):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield causes.invalid(f"metadata.finalizers[{index}]", name, why)


def _managed_fields(entries: Sequence[Object], path: str) -> Causes:
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            yield causes.invalid(f"{where}.operation", entry.get("operation") or "", "must be `Apply` or `Update`")
        if (entry.get("fieldsType") or "FieldsV1") != "FieldsV1":
            yield causes.invalid(f"{where}.fieldsType", entry["fieldsType"], "must be `FieldsV1`")
        if len(entry.get("manager") or "") > 128:
            yield causes.too_long(f"{where}.manager", 128)
        if len(entry.get("subresource") or "") > 256:
            yield causes.too_long(f"{where}.subresource", 256)


def label_selector(selector: Object | None, path: str) -> Causes:
    """Validate a LabelSelector. A missing one is valid."""
    if selector is None:
        return
    yield from labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        operator, values = requirement.get("operator"), requirement.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                yield causes.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield causes.forbidden(
                    f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        else:
            yield causes.invalid(f"{where}.operator", operator, "not a valid selector operator")
        yield from label_key(requirement.get("key", ""), f"{where}.key")
        for position, value in enumerate(values):
            yield from causes.invalid_each(f"{where}.values[{position}]", value, texts.label_value(value))
