"""The structure of the built-in kinds: fields, their types, and the merge rules of patches and server-side apply.

Names and nesting come from the models of the Kubernetes client, which are generated from the server's OpenAPI. Other
properties (omitempty, merge keys, quantities) are in `type_tables`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kube_sandbox.apiserver.schema import models, type_tables

_PREFIX = re.compile(
    r"^(Admissionregistration|Apiextensions|Authentication|Core|Discovery|Events|Flowcontrol|Rbac|Storage)?"
    r"(V\d+(?:(?:alpha|beta)\d+)?)"
)
_SCALARS = {"str": "string", "bool": "bool", "int": "int32", "float": "float", "datetime": "time", "object": "any"}
_SPECIAL_MODELS = {
    ("v1", "Event"): "CoreV1Event",
    ("events.k8s.io/v1", "Event"): "EventsV1Event",
    ("authentication.k8s.io/v1", "TokenRequest"): "AuthenticationV1TokenRequest",
}
_SPECIAL_TYPES = {
    "V1JSONSchemaProps.items": "V1JSONSchemaProps",
}


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value.

    `kind` is string, bool, int32, int64, float, quantity, int-or-string, time, micro-time, bytes, any (free JSON),
    struct, list or map. `model` is the name of a struct's model; `items` is the type of the items of a list or map.
    """

    kind: str
    model: str = ""
    items: "Type | None" = None

    @property
    def go_name(self) -> str:
        """The name of the type in Go's decoding errors."""
        if self.kind == "struct":
            return f"{_version(self.model)}.{go_name(self.model)}"
        if self.items is not None:
            return ("[]" if self.kind == "list" else "map[string]") + self.items.go_name
        return {"int-or-string": "int32", "bytes": "[]uint8", "float": "float64"}.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct.

    `always`: the field is encoded even when it is empty. `pointer`: a zero value differs from absence; with `always`,
    absence is encoded as null.

    For server-side apply, `keys` are the key fields of a list that is merged by key, `is_set` marks a list of distinct
    scalars, and `atomic` marks a map or struct that is replaced as a whole. Every other list is atomic.

    For strategic merge patches, `merges` marks a list that is merged, by `merge_key` if it has one, and `replaces`
    marks a struct that is replaced as a whole.
    """

    type: Type
    always: bool = False
    pointer: bool = False
    keys: tuple[str, ...] = ()
    is_set: bool = False
    atomic: bool = False
    merge_key: str = ""
    merges: bool = False
    replaces: bool = False


def go_name(model: str) -> str:
    return _PREFIX.sub("", model)


def _version(model: str) -> str:
    match = _PREFIX.match(model)
    return match.group(2).lower() if match else "v1"


def model_of(api_version: str, kind: str) -> str | None:
    """The name of the model of a built-in kind; None for other kinds."""
    if "." in api_version.partition("/")[0] and not api_version.partition("/")[0].endswith(".k8s.io"):
        return None
    version = api_version.rpartition("/")[2]
    name = _SPECIAL_MODELS.get((api_version, kind)) or f"{version[:1].upper()}{version[1:]}{kind}"
    return name if models.exists(name) else None


@cache
def _presence() -> Mapping[str, Mapping[str, str]]:
    """The marks in `type_tables.PRESENCE` per model and field: `!`, `?`, or `*` for a field without a mark."""
    table: dict[str, dict[str, str]] = {}
    for line in type_tables.PRESENCE.replace("\n  ", " ").strip().splitlines():
        model, *fields = line.split()
        table[model] = {name.lstrip("!?"): name[0] if name[0] in "!?" else "*" for name in fields}
    return table


def _type(model: str, name: str, text: str) -> Type:
    text = _SPECIAL_TYPES.get(f"{model}.{name}", text)
    if text.startswith("list["):
        return Type("list", items=_type(model, name, text[5:-1]))
    if text.startswith("dict("):
        return Type("map", items=_type(model, name, text[5:-1].partition(", ")[2]))
    if text not in _SCALARS:
        return Type("struct", model=text)
    kind = _SCALARS[text]
    path = f"{model}.{name}"
    if kind == "string" and (name in type_tables.QUANTITIES or path in type_tables.QUANTITIES):
        kind = "quantity"
    elif kind == "string" and path in type_tables.BYTES:
        kind = "bytes"
    elif kind == "int32" and name in type_tables.INT64:
        kind = "int64"
    elif kind == "time" and name in type_tables.MICRO_TIMES:
        kind = "micro-time"
    elif kind == "any" and name in type_tables.INT_OR_STRING:
        kind = "int-or-string"
    return Type(kind)


@cache
def fields(model: str) -> Mapping[str, Field]:
    """The fields of a model by their JSON names."""
    types = models.types(model)
    return {name: _field(model, name, text, is_object="metadata" in types) for name, text in types.items()}


def _field(model: str, name: str, text: str, *, is_object: bool) -> Field:
    type_ = _type(model, name, text)
    path = f"{model}.{name}"
    presence = _presence().get(model, {}).get(name, "")
    by_value = name == "metadata" or (is_object and name in ("spec", "status") and type_.kind == "struct")
    patched = {**type_tables.MERGED_LISTS.get(model, {}), **type_tables.PATCHED_LISTS.get(model, {})}.get(name, "")
    applied = {**type_tables.MERGED_LISTS.get(model, {}), **type_tables.APPLIED_LISTS.get(model, {})}.get(name, "")
    atomic = path in type_tables.ATOMIC_MAPS or (
        type_.kind == "struct"
        and go_name(type_.model) in type_tables.ATOMIC_MODELS
        and path not in type_tables.GRANULAR_STRUCTS
    )
    return Field(
        type=type_,
        always=presence in ("!", "?") or by_value or (type_.kind == "time" and name in type_tables.TIMES_BY_VALUE),
        pointer=presence in ("?", "*"),
        keys=tuple(applied.split()),
        is_set=path in type_tables.SETS,
        atomic=atomic,
        merge_key=patched.partition(" ")[0],
        merges=bool(patched) or path in type_tables.PATCHED_SETS,
        replaces=path in type_tables.REPLACED_BY_PATCH,
    )
