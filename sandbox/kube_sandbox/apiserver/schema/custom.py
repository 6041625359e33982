"""Pruning, defaulting and validation of custom resources with their structural schemas.

Texts and rules are those of `k8s.io/apiextensions-apiserver` (`pkg/apiserver/schema`, `pkg/apiserver/validation`) and
of the OpenAPI validator that it uses (`k8s.io/kube-openapi`, `pkg/validation`).
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema import cel_rules
from kube_sandbox.apiserver.schema.values import ABSENT, OBJECT_FIELDS, Cause, cause, check, invalid, json_type, shown
from kube_sandbox.apiserver.storage.registry import CustomType

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"


def prune(obj: Object, custom: CustomType) -> list[str]:
    """Remove the fields that the schema does not specify, in place. Returns a message per removed field."""
    unknown: list[str] = []
    if not custom.preserve_unknown:
        _prune(obj, custom.schema, "", unknown, top=True)
    return [f'unknown field "{path}"' for path in sorted(unknown)]


def _prune(value: Any, schema: Object, path: str, unknown: list[str], *, top: bool = False) -> None:
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        top = top or bool(schema.get(_EMBEDDED))
        for key in list(value):
            below = f"{path}.{key}" if path else key
            if top and key in OBJECT_FIELDS:
                continue  # every object has these fields, also when the schema does not specify them
            if key in properties:
                _prune(value[key], properties[key], below, unknown)
            elif isinstance(additional, dict):
                _prune(value[key], additional, below, unknown)
            elif not schema.get(_PRESERVE) and additional is not True:
                unknown.append(below)
                del value[key]
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            _prune(item, schema["items"], f"{path}[{index}]", unknown)


def apply_defaults(value: Any, schema: Object) -> None:
    """Set the defaults of missing fields, in place. A null in a field that is not nullable counts as missing."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        below = {key: properties.get(key) or additional for key in (*properties, *value)}
        for key, part in below.items():
            if not isinstance(part, dict):
                continue
            if key in value and value[key] is None and not part.get("nullable") and part.get("type"):
                del value[key]
            if key not in value and "default" in part and key in properties:
                value[key] = copy.deepcopy(part["default"])
            if key in value:
                apply_defaults(value[key], part)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            apply_defaults(item, schema["items"])


def validate(
    obj: Object, old: Object | None, custom: CustomType, subresource: str, earlier: list[Cause]
) -> list[Cause]:
    """The causes that make a custom resource invalid, in addition to those in `earlier`.

    A write of status is validated by its status only. Parts that an update does not change are not validated again.
    """
    schema = custom.schema
    if subresource == "status":
        status = (schema.get("properties") or {}).get("status", {})
        before = (old or {}).get("status", ABSENT)
        causes = [
            {**found, "field": f"status.{found['field']}"} for found in check(obj.get("status", {}), status, "", before)
        ]
        value: Object = {"status": obj.get("status")}
    else:
        value = {key: part for key, part in obj.items() if key not in OBJECT_FIELDS}
        causes = list(check(value, schema, "", ABSENT if old is None else old, top=True))
    causes += list(_list_types(value, schema, ""))
    if custom.scale and subresource != "status":
        causes += _scale_fields(obj, custom.scale)
    return causes + cel_rules.check(obj, old, schema, blocked=_blocks([*earlier, *causes]))


_BLOCKING = frozenset(
    ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"]
)
"""Reasons of causes after which the CEL rules are not evaluated."""


def _blocks(causes: list[Cause]) -> bool:
    return any(found["reason"] in _BLOCKING for found in causes)


def _list_types(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    """Duplicate items of lists with the type set, and duplicate keys of lists with the type map."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            below = properties.get(key) or (additional if isinstance(additional, dict) else None)
            if below:
                yield from _list_types(item, below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _duplicates(value, schema, path)
        if isinstance(schema.get("items"), dict):
            for index, item in enumerate(value):
                yield from _list_types(item, schema["items"], f"{path}[{index}]")


def _duplicates(value: list[Any], schema: Object, path: str) -> Iterator[Cause]:
    identity = _identity(schema)
    if identity is None:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        found = identity(item)
        if found is None:
            continue
        if (text := shown(found)) in seen:
            yield cause("FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {text}")
        seen.add(text)


def _identity(schema: Object) -> Callable[[Any], Any] | None:
    """A function that returns the identity of an item in a set or map list; None for other lists."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return lambda item: item
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or []

            def of_keys(item: Any) -> Any:
                if not isinstance(item, dict):
                    return None
                # An item without any key is reported as incomplete, not as a duplicate.
                return {key: item[key] for key in keys if key in item} or None

            return of_keys
    return None


def _go_type(value: Any) -> str:
    names = {"boolean": "bool", "integer": "int64", "number": "float64", "string": "string", "array": "[]interface {}"}
    return names.get(json_type(value), "map[string]interface {}")


def _scale_fields(obj: Object, scale: Object) -> list[Cause]:
    path = str(scale.get("specReplicasPath", ""))
    value: Any = obj
    for part in path.strip(".").split("."):
        if value is None:
            return []
        if not isinstance(value, dict):
            why = f"{path} accessor error: {value} is of the type {_go_type(value)}, expected map[string]interface{{}}"
            return [invalid(path, 0, why)]
        value = value.get(part)
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [invalid(path, 0, f"{path} accessor error: {value} is of the type {_go_type(value)}, expected int64")]
    return [] if value >= 0 else [invalid(path, value, "should be a non-negative integer")]
