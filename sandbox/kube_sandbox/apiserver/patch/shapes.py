"""The schemas of server-side apply: which maps and lists it merges member by member, and which it replaces as a whole.

A `Shape` describes a built-in kind (from `types`) or a custom resource (from its structural schema). The rules are
those of kube-openapi's schemaconv, which produces the real server's schemas for structured-merge-diff.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema import type_tables, types


def _no_member(_: str) -> "Shape | None":
    return None


@dataclass(frozen=True, slots=True)
class Shape:
    """The schema of one value.

    `kind` is map, list, numeric, string, boolean, untyped (any scalar), free (any value, replaced as a whole), or
    deduced (any value; maps are merged). For a map, `member` returns the shape of a declared field, and `other` is the
    shape of all other fields (None: no other field is allowed). For a list, `items` is the shape of an item. `keys`
    are the fields that identify an item, and `defaults` their values when an item omits them. With `is_set`, the value
    of an item identifies it.
    """

    kind: str
    atomic: bool = False
    member: Callable[[str], "Shape | None"] = field(default=_no_member)
    other: "Shape | None" = None
    items: "Shape | None" = None
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_set: bool = False

    def of(self, name: str) -> "Shape | None":
        """The shape of a map's member, whether it is declared or not. None when the map does not allow it."""
        return DEDUCED if self.kind == "deduced" else self.member(name) or self.other


DEDUCED = Shape("deduced")
_SCALARS = {
    "string": "string", "bytes": "string", "bool": "boolean", "int32": "numeric", "int64": "numeric",
    "float": "numeric", "any": "free",
}  # fmt: skip
_SCHEMA_SCALARS = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_ZERO = {"string": "", "int32": 0}


def of_kind(api_version: str, kind: str, crd_schema: Object | None) -> Shape:
    """The shape of a whole object. `crd_schema` is the structural schema of a custom resource."""
    if crd_schema is not None:
        return _object(crd_schema, preserve=False, resource=True)
    model = types.model_of(api_version, kind)
    if model is None:
        raise LookupError(f"{kind} of {api_version} is not a built-in kind")
    return _struct(model, atomic=False)


@cache
def _struct(model: str, *, atomic: bool) -> Shape:
    def member(name: str) -> Shape | None:
        found = types.fields(model).get(name)
        return None if found is None else _of_field(found)

    return Shape("map", atomic=atomic, member=member)


@cache
def _of_field(found: types.Field) -> Shape:
    type_ = found.type
    if type_.kind == "struct":
        return _struct(type_.model, atomic=found.atomic)
    if type_.items is None:
        return Shape(_SCALARS.get(type_.kind, "untyped"))
    if type_.kind == "map":
        return Shape("map", atomic=found.atomic, other=_of_item(type_.items))
    return Shape(
        "list",
        atomic=not (found.keys or found.is_set),
        items=_of_item(type_.items),
        keys=found.keys,
        defaults=_key_defaults(type_.items, found.keys),
        is_set=found.is_set,
    )


def _of_item(type_: types.Type) -> Shape:
    atomic = type_.kind == "struct" and types.go_name(type_.model) in type_tables.ATOMIC_MODELS
    return _of_field(types.Field(type_, atomic=atomic))


def _key_defaults(items: types.Type, keys: tuple[str, ...]) -> dict[str, Any]:
    """The values of keys that an item omits: TCP for `protocol`, the zero value for a required field."""
    known = types.fields(items.model) if keys else {}
    required = {key: _ZERO[known[key].type.kind] for key in keys if known[key].always}
    return required | ({"protocol": "TCP"} if "protocol" in keys else {})


def _of_schema(schema: Object, *, preserve: bool) -> Shape:
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    match schema.get("type"):
        case "object":
            return _object(schema, preserve=preserve, resource=bool(schema.get("x-kubernetes-embedded-resource")))
        case "array":
            return _list(schema, preserve=preserve)
        case "string":
            return Shape("untyped" if schema.get("format", "byte") != "byte" else "string")
        case str() as scalar:
            return Shape(_SCHEMA_SCALARS.get(scalar, "untyped"))
    return Shape("untyped") if schema.get("x-kubernetes-int-or-string") else DEDUCED


def _object(schema: Object, *, preserve: bool, resource: bool) -> Shape:
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        other: Shape | None = _of_schema(additional, preserve=preserve)
    else:
        other = DEDUCED if additional or (additional is None and (preserve or not properties)) else None

    def member(name: str) -> Shape | None:
        if resource and name in ("apiVersion", "kind"):
            return Shape("string")
        if resource and name == "metadata":
            return _struct("V1ObjectMeta", atomic=False)
        found = properties.get(name)
        return None if found is None else _of_schema(found, preserve=preserve)

    return Shape("map", atomic=schema.get("x-kubernetes-map-type") == "atomic", member=member, other=other)


def _list(schema: Object, *, preserve: bool) -> Shape:
    kind = schema.get("x-kubernetes-list-type")
    items = schema.get("items") or {}
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    properties = items.get("properties") or {}
    return Shape(
        "list",
        atomic=not (keys or kind == "set"),
        items=_of_schema(items, preserve=preserve),
        keys=keys,
        defaults={key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})},
        is_set=kind == "set",
    )
