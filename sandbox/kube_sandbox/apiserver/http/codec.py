"""Decodes request bodies to objects of a type, and encodes stored objects in an API version."""

from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.http import requests
from kube_sandbox.apiserver.http.responses import with_type
from kube_sandbox.apiserver.schema import custom, defaults, fields, types
from kube_sandbox.apiserver.storage.events import from_core, to_core
from kube_sandbox.apiserver.storage.registry import ResourceType, Subresource
from kube_sandbox.apiserver.storage.store import Item


def decode(resource: ResourceType, body: bytes, content_type: str, validation: str, warnings: list[str]) -> Object:
    """The object of a create or update request, after type checks, pruning and defaulting.

    `validation` is the request's fieldValidation. Warnings are added to `warnings`. Raises StatusError 400 when the
    body is not an object of the type.
    """
    obj = requests.decode(body, content_type, resource.kind)
    check_type(resource, obj, body)
    duplicates: list[str] = []
    if validation != "Ignore" and content_type.partition(";")[0].strip() in ("", "application/json"):
        duplicates = fields.parse(body)[1]
    sent = obj
    obj, unknown = normalized(resource, sent)
    problems = [*duplicates, *unknown]
    report(resource, problems if resource.custom else fields.sort_by_position(sent, problems), validation, warnings)
    return obj


def report(resource: ResourceType, problems: list[str], validation: str, warnings: list[str]) -> None:
    """Raise StatusError 400 or add warnings for unknown and duplicate fields, according to fieldValidation."""
    if not problems:
        return
    if validation == "Strict":
        if resource.custom is not None:
            raise StatusError(
                400,
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"strict decoding error: {', '.join(problems)}",
            )
        raise fields.strict(resource.api_version, resource.kind, problems)
    if validation != "Ignore":
        warnings += problems


def decode_subresource(
    kind: tuple[str, str, str], body: bytes, content_type: str, *, older: tuple[str, ...] = ()
) -> Object:
    """The body of a subresource that has its own type, such as Scale or TokenRequest. `older` are older versions of
    the type with the same fields; the result is in the version of `kind`."""
    group, version, name = kind
    obj = requests.decode(body, content_type, name)
    if any(obj.get("apiVersion") == f"{group}/{each}" for each in older):
        obj["apiVersion"] = f"{group}/{version}"
    _check_built_in(obj, group, version, name)
    return fields.check(obj, api_version=f"{group}/{version}" if group else version, kind=name)[0]


def kind_of(resource: ResourceType, subresource: Subresource | None) -> tuple[str, str, str]:
    """Group, version and kind of the objects that clients write to a resource or subresource."""
    if subresource is not None and subresource.kind[1]:
        return subresource.kind
    return resource.group, resource.version, resource.kind


def normalized(resource: ResourceType, obj: Object) -> tuple[Object, list[str]]:
    """The pruned and defaulted object, and a message per unknown field. Raises StatusError 400 for a wrong type."""
    obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    if resource.custom is None:
        checked, unknown = fields.check(obj, api_version=resource.api_version, kind=resource.kind)
        defaults.apply(checked)
        return checked, unknown
    metadata, unknown_metadata = custom_metadata(resource, obj.get("metadata"))
    obj["metadata"] = metadata
    unknown = custom.prune(obj, resource.custom)
    custom.apply_defaults(obj, resource.custom.schema)
    return obj, [*unknown_metadata, *unknown]


def custom_metadata(resource: ResourceType, metadata: Any) -> tuple[Object, list[str]]:
    """The metadata of a custom resource, decoded as that of a built-in kind, and a message per unknown field."""
    stand_in = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {} if metadata is None else metadata}
    try:
        checked, unknown = fields.check(stand_in, api_version="v1", kind="ConfigMap")
    except StatusError as error:
        why = error.message.partition("handled as a ConfigMap: ")[2].replace("ObjectMeta.metadata.", "ObjectMeta.")
        raise StatusError(
            400, f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
        ) from error
    return checked.get("metadata", {}), unknown


def check_type(resource: ResourceType, obj: Object, body: bytes) -> None:
    """Raise StatusError 400 for an object of another type. Only a custom resource must have apiVersion and kind."""
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    if resource.custom is not None:
        if not kind:
            shown = body[:1024].decode(errors="replace")
            raise StatusError(
                400,
                f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing in"
                f" '{shown}' ({requests.summary(body)})",
            )
        if api_version != resource.api_version:
            raise StatusError(
                400,
                f"the API version in the data ({api_version}) does not match the expected API version"
                f" ({resource.api_version})",
            )
        if kind != resource.kind:
            cause = {
                "reason": "FieldValueInvalid",
                "message": f'Invalid value: "{kind}": must be {resource.kind}',
                "field": "kind",
            }
            raise invalid(resource.group, kind, (obj.get("metadata") or {}).get("name", ""), [cause])
        return
    _check_built_in(obj, resource.group, resource.version, resource.kind)


def _check_built_in(obj: Object, group: str, version: str, expected: str) -> None:
    wanted = f"{group}/{version}" if group else version
    api_version, kind = obj.get("apiVersion") or wanted, obj.get("kind") or expected
    if (api_version, kind) == (wanted, expected):
        return
    named = api_version.rpartition("/")[2]
    if types.model_of(api_version, kind):
        why = f"converting ({named}.{kind}) to ({group.partition('.')[0] or 'core'}.{expected}): unknown conversion"
    else:
        scheme = "pkg/api/legacyscheme/scheme.go:30"
        why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme}"'
    raise fields.undecodable(api_version, kind, expected, why)


def from_storage(resource: ResourceType, item: Item) -> Object:
    """A copy of a stored object in the API version of the resource. The caller may change it."""
    obj = item.copy()
    if resource.group == "events.k8s.io":
        obj = from_core(obj)
    obj["apiVersion"] = resource.api_version
    return obj


def to_storage(resource: ResourceType, obj: Object) -> Object:
    """An object in the version in which it is stored. The inverse of `from_storage`."""
    if resource.group == "events.k8s.io":
        obj = to_core(obj)
        obj["apiVersion"] = "v1"
    elif resource.custom is not None:
        obj = {**obj, "apiVersion": resource.custom.storage_api_version}
    return obj


def body(resource: ResourceType, item: Item) -> bytes:
    """The JSON of a stored object in the API version of the resource, without apiVersion and kind."""
    if resource.group == "events.k8s.io":
        obj = from_core(item.copy())
        return orjson.dumps({key: value for key, value in obj.items() if key not in ("apiVersion", "kind")})
    return item.body


def encode(resource: ResourceType, item: Item) -> bytes:
    """The JSON of a stored object in the API version of the resource."""
    return with_type(resource.api_version, resource.kind, body(resource, item))


def encode_in_list(resource: ResourceType, item: Item) -> bytes:
    """The JSON of a list item. Items of built-in kinds have no apiVersion and kind."""
    return encode(resource, item) if resource.custom is not None else body(resource, item)
