"""Validation of the schemas in CRDs, which must be structural.

The rules are those of apiextensions-apiserver, pkg/apiserver/schema and pkg/apis/apiextensions/validation.
"""

import re
from collections.abc import Iterator
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes
from kube_sandbox.apiserver.validation.causes import Cause, Causes

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE, _LIST_KEYS, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_COMBINATIONS = ("allOf", "anyOf", "oneOf")

_EMPTY_IN_COMBINATION = {
    "type": "empty", "additionalProperties": "undefined", "default": "undefined", "title": "empty",
    "description": "empty", "nullable": "false", _PRESERVE: "false", _EMBEDDED: "false", _INT_OR_STRING: "false",
    _LIST_KEYS: "empty", _LIST_TYPE: "undefined", _MAP_TYPE: "undefined",
}  # fmt: skip
_NAMES_ONLY = ({"name"}, {"generateName"}, {"name", "generateName"})
_PLACES = {
    "root": "at the root",
    "item": "for specified array items",
    "field": "for specified object fields",
}
_INT_OR_STRING_ANY = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


def structural(schema: Object, path: str, *, has_status: bool) -> Causes:
    """Validate the schema of a version."""
    if has_status and schema.get("type") not in ("object", None):
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield causes.invalid(f"{path}.type", schema["type"], why)
    if schema.get("nullable"):
        yield causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    yield from sorted(_structure(schema, "root", path), key=_text)
    yield from _keywords(schema, path)


def _text(cause: Cause) -> str:
    return f"{cause['field']}: {cause['message']}"


def _structure(schema: Object, place: str, path: str) -> Causes:
    kind, properties = schema.get("type") or "", schema.get("properties") or {}
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        yield causes.required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _structure(items, "item", f"{path}.items")
    for name, below in properties.items():
        yield from _structure(below, "field", f"{path}.properties[{name}]")
    if additional is not None:
        if place == "root":
            yield causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if schema.get(_EMBEDDED):
            why = "must not be used if x-kubernetes-embedded-resource is set"
            yield causes.forbidden(f"{path}.additionalProperties", why)
        if isinstance(additional, dict):
            yield from _structure(additional, "field", f"{path}.additionalProperties")
    for extension in (_PRESERVE, _EMBEDDED):
        if schema.get(_INT_OR_STRING) and schema.get(extension):
            why = "must be false if x-kubernetes-int-or-string is true"
            yield causes.invalid(f"{path}.{extension}", True, why)
    yield from _values(schema, path)
    yield from _type(schema, kind, place, path)
    yield from _metadata(schema, properties, place, path)


def _type(schema: Object, kind: str, place: str, path: str) -> Causes:
    if schema.get(_EMBEDDED) and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield causes.invalid(f"{path}.type", kind, why) if kind else causes.required(f"{path}.type", why)
    elif not kind and not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
        yield causes.required(f"{path}.type", f"must not be empty {_PLACES[place]}")
    if place == "root" and kind not in ("", "object"):
        yield causes.invalid(f"{path}.type", kind, "must be object at the root")


def _metadata(schema: Object, properties: Object, place: str, path: str) -> Causes:
    """Validate that a schema does not redefine apiVersion, kind and metadata."""
    if place == "root" or schema.get(_EMBEDDED):
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                yield causes.invalid(
                    f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string"
                )
        metadata = properties.get("metadata")
        where = f"{path}.properties[metadata]"
        if metadata is not None and metadata.get("type") != "object":
            yield causes.invalid(f"{where}.type", metadata.get("type", ""), "must be object")
        if metadata is not None and place == "root":
            named = set(metadata.get("properties") or ())
            others = set(metadata) - {"type", "properties", "description", "default"}
            if others or (named and named not in _NAMES_ONLY):
                why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
                yield causes.forbidden(where, why)
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not properties:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield causes.required(f"{path}.properties", why)


def _values(schema: Object, path: str) -> Causes:
    """Validate the parts of a schema that restrict values and must not define fields."""
    if pattern := schema.get("pattern"):
        try:
            re.compile(pattern)
        except re.error as error:
            why = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
            yield causes.invalid(f"{path}.pattern", pattern, why)
    for combination in _COMBINATIONS:
        if combination == "anyOf" and schema.get(combination) == _INT_OR_STRING_ANY and schema.get(_INT_OR_STRING):
            continue
        for index, part in enumerate(schema.get(combination) or ()):
            yield from _restriction(part, schema, f"{path}.{combination}[{index}]", path)
    if isinstance(schema.get("not"), dict):
        yield from _restriction(schema["not"], schema, f"{path}.not", path)


def _restriction(part: Object, defined: Object, path: str, defined_at: str) -> Causes:
    for field, wanted in _EMPTY_IN_COMBINATION.items():
        if part.get(field) not in (None, False, "", []):
            yield causes.forbidden(f"{path}.{field}", f"must be {wanted} to be structural")
    for name, below in (part.get("properties") or {}).items():
        where = f"{path}.properties[{name}]"
        if name == "metadata":
            yield causes.forbidden(where, "must not be specified in a nested context")
        known = (defined.get("properties") or {}).get(name)
        if known is None:
            yield causes.required(f"{defined_at}.properties[{name}]", f"because it is defined in {where}")
        else:
            yield from _restriction(below, known, where, f"{defined_at}.properties[{name}]")
    if isinstance(part.get("items"), dict) and isinstance(defined.get("items"), dict):
        yield from _restriction(part["items"], defined["items"], f"{path}.items", f"{defined_at}.items")
    yield from _values(part, path)


def _keywords(schema: Object, path: str) -> Causes:
    """Validate keywords that Kubernetes does not support or restricts, in this schema and the nested ones."""
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield causes.unsupported(f"{path}.type", kind, _TYPES)
    for word in _UNSUPPORTED:
        if word in schema:
            yield causes.forbidden(f"{path}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield causes.forbidden(f"{path}.uniqueItems", why)
    additional = schema.get("additionalProperties")
    if additional not in (None, True) and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield causes.forbidden(f"{path}.additionalProperties", why)
    for below, where in _nested(schema, path):
        yield from _keywords(below, where)
    yield from _lists(schema, kind, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        if not str(rule.get("rule") or "").strip():
            yield causes.required(f"{path}.x-kubernetes-validations[{index}].rule", "rule is not specified")


def _nested(schema: Object, path: str) -> Iterator[tuple[Object, str]]:
    """The schemas directly in a schema, with their paths."""
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], f"{path}.additionalProperties"
    for name, below in sorted((schema.get("properties") or {}).items()):
        yield below, f"{path}.properties[{name}]"
    for combination in _COMBINATIONS:
        for index, part in enumerate(schema.get(combination) or ()):
            yield part, f"{path}.{combination}[{index}]"
    if isinstance(schema.get("items"), dict):
        yield schema["items"], f"{path}.items"


def _lists(schema: Object, kind: str, path: str) -> Causes:
    """Validate the extensions that define the merging of lists and maps."""
    if schema.get(_PRESERVE) is False:
        yield causes.invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    for extension, wanted, known in (
        (_MAP_TYPE, "object", ("atomic", "granular")),
        (_LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        value = schema.get(extension)
        if value is not None and kind != wanted:
            why = f"must be {wanted} if {extension} is specified"
            yield causes.invalid(f"{path}.type", kind, why) if kind else causes.required(f"{path}.type", why)
        if value is not None and value not in known:
            yield causes.unsupported(f"{path}.{extension}", value, known)
    list_type, keys = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or []
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        yield causes.required(where, why) if list_type is None else causes.invalid(where, list_type, why)
    if list_type == "map":
        yield from _map_keys(schema.get("items"), keys, path)


def _map_keys(items: Any, keys: list[str], path: str) -> Causes:
    if not keys:
        yield causes.required(f"{path}.{_LIST_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield causes.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield causes.invalid(f"{path}.items.type", items.get("type", ""), why)
        return
    properties = items.get("properties") or {}
    for key in keys:
        if key not in properties:
            yield causes.invalid(f"{path}.{_LIST_KEYS}", keys, "entries must all be names of item properties")
        elif key not in (items.get("required") or ()) and "default" not in properties[key]:
            where = f"{path}.items.properties[{key}].default"
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield causes.required(where, why)
    if len(set(keys)) != len(keys):
        yield causes.invalid(f"{path}.{_LIST_KEYS}", keys, "must not contain duplicate entries")
