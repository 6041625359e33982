"""Decodes objects of built-in kinds like Go.

Unknown fields are removed and reported, and wrong types are errors. The result is the object that Go would encode:
empty members are omitted, and quantities and times are in canonical form. The real server decodes into the Go types of
k8s.io/api with sigs.k8s.io/json; the texts are those of that decoder.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kube_sandbox import quantities
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.gotext import json_name
from kube_sandbox.apiserver.schema import types

_REFLECT_KINDS = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_CALENDAR = 400  # years after which the days repeat: Go also has the years 0 and 10000, Python does not
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_MAX_UNKNOWN = 100
_ZERO = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "float": 0, "int-or-string": 0, "quantity": "0",
}  # fmt: skip


def check(obj: Object, *, api_version: str, kind: str) -> tuple[Object, list[str]]:
    """The decoded object, and a message per unknown field (`unknown field "spec.foo"`).

    An object without apiVersion and kind counts as one of this kind. Raises StatusError 400 when it has another kind,
    or when a member has a wrong type.
    """
    try:
        return decode(obj, api_version=api_version, kind=kind)
    except ValueError as error:
        named_version, named_kind = obj.get("apiVersion") or api_version, obj.get("kind") or kind
        raise undecodable(str(named_version), str(named_kind), kind, str(error)) from None


def decode(obj: Object, *, api_version: str, kind: str, unstructured: bool = False) -> tuple[Object, list[str]]:
    """Like `check`, but raises ValueError with Go's text. With `unstructured`, the texts are those of the converter
    that the server uses for the result of a strategic merge patch, instead of those of the JSON decoder."""
    named_version, named_kind = obj.get("apiVersion") or api_version, obj.get("kind") or kind
    if (named_version, named_kind) != (api_version, kind):
        raise ValueError(
            f'no kind "{named_kind}" is registered for version "{named_version}" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"'
        )
    model = types.model_of(api_version, kind)
    if model is None:
        raise LookupError(f"{kind} of {api_version} is not a built-in kind")
    decoder = _Decoder(unstructured=unstructured)
    decoded = decoder.struct(model, {**obj, "apiVersion": api_version, "kind": kind}, None)
    return decoded, decoder.unknown


def undecodable(api_version: str, kind: str, expected: str, why: str) -> StatusError:
    """400: the body is not an object of the expected kind."""
    version = api_version.rpartition("/")[2]
    return StatusError(400, f'{kind} in version "{version}" cannot be handled as a {expected}: {why}')


def strict(api_version: str, kind: str, messages: Sequence[str]) -> StatusError:
    """400: field validation is Strict, and the body has unknown or duplicate fields."""
    return undecodable(api_version, kind, kind, f"strict decoding error: {', '.join(messages)}")


def parse(body: bytes) -> tuple[Any, list[str]]:
    """The JSON value, and a message per duplicate member (`duplicate field "spec.replicas"`). The value of the last
    duplicate is used. Raises ValueError for malformed JSON."""
    found: list[tuple[str, Any]] = []

    def pairs(members: list[tuple[str, Any]]) -> Object:
        result = dict(members)
        if len(result) != len(members):
            seen: set[str] = set()
            for name, _ in members:
                if name in seen:
                    found.append((name, result))
                seen.add(name)
        return result

    document = json.loads(body, object_pairs_hook=pairs, parse_constant=_no_constant)
    if not found:
        return document, []
    paths = {id(value): path for path, value in _walk(document, "")}
    return document, [f'duplicate field "{_join(paths.get(id(owner), ""), name)}"' for name, owner in found]


def sort_by_position(document: Object, messages: Sequence[str]) -> list[str]:
    """Messages that each contain a field in quotes, sorted by the position of the field in the document."""
    if len(messages) < 2:
        return list(messages)
    places = {path: place for place, path in enumerate(_paths(document, ""))}
    return sorted(messages, key=lambda message: places.get(message.partition('"')[2][:-1], 0))


def _paths(value: Any, path: str) -> Iterator[str]:
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item, _join(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, f"{path}[{index}]")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _walk(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        below = [found for name, item in value.items() for found in _walk(item, _join(path, name))]
    elif isinstance(value, list):
        below = [found for index, item in enumerate(value) for found in _walk(item, f"{path}[{index}]")]
    else:
        return []
    return [(path, value), *below]


class _Place(NamedTuple):
    """The place of a value in the decoded object. Its paths are needed only for messages."""

    parent: "_Place | None"
    name: str
    """`.spec` for a field or a key of a map, `[0]` for an item of a list."""
    is_field: bool

    def path(self) -> str:
        """The path as in messages about unknown fields: `spec.containers[0].x`."""
        return "".join(place.name for place in self._places()).removeprefix(".")

    def go_path(self) -> str:
        """The path as in Go's type errors, without indices and keys: `.spec.containers.x`."""
        return "".join(place.name for place in self._places() if place.is_field)

    def _places(self) -> list["_Place"]:
        places = [self]
        while (parent := places[-1].parent) is not None:
            places.append(parent)
        return places[::-1]


class _Decoded(NamedTuple):
    """How a field of a struct is decoded."""

    type: types.Type
    always: bool
    """Whether the field is encoded when it is absent."""
    null: bool
    """Whether absence is encoded as null."""
    encoded: bool
    """Whether a present field is encoded when it is empty, in spite of `omitempty`."""


@cache
def _fields(model: str) -> Mapping[str, _Decoded]:
    return {
        name: _Decoded(
            field.type,
            field.always,
            null=field.always and field.pointer,
            encoded=field.always
            or field.pointer
            or field.type.kind in ("struct", "int-or-string", "any", "time", "micro-time")
            # An empty managedFields resets the field ownership. All other empty lists have no meaning.
            or name == "managedFields",
        )
        for name, field in types.fields(model).items()
    }


@cache
def _always(model: str) -> Mapping[str, _Decoded]:
    """The fields of a model that are encoded when they are absent."""
    return {name: field for name, field in _fields(model).items() if field.always}


class _Decoder:
    """Decodes one object."""

    def __init__(self, *, unstructured: bool) -> None:
        self.unknown: list[str] = []
        self._unstructured = unstructured

    def struct(self, model: str, value: Object, place: _Place | None) -> Object:
        known = _fields(model)
        if not known.keys() >= value.keys():
            unknown = [_Place(place, f".{name}", True).path() for name in value if name not in known]
            self.unknown += [f'unknown field "{path}"' for path in unknown[: _MAX_UNKNOWN - len(self.unknown)]]
        result: Object = {}
        for name, member in value.items():
            if (field := known.get(name)) is None:
                continue
            if member is None:
                if field.always:
                    result[name] = _zero(field)
                continue
            decoded = self.value(field.type, member, _Place(place, f".{name}", True), model)
            if decoded or field.encoded:
                result[name] = decoded
        for name, field in _always(model).items():
            if name not in value:
                result[name] = _zero(field)
        return result

    def value(self, type_: types.Type, value: Any, place: _Place, model: str) -> Any:
        """A value in a field of a struct with this model."""
        kind = type_.kind
        if kind == "any" or (kind == "string" and value.__class__ is str):
            return value
        if kind == "struct":
            if isinstance(value, dict):
                return self.struct(type_.model, value, place)
            if value is None:
                return self.struct(type_.model, {}, place)
            raise self._mismatch(value, place, model, type_)
        if value is None:
            return _ZERO.get(kind)
        if kind == "list" and (items := type_.items) is not None:
            if not isinstance(value, list):
                raise self._mismatch(value, place, model, type_)
            return [self.value(items, item, _Place(place, f"[{i}]", False), model) for i, item in enumerate(value)]
        if kind == "map" and (items := type_.items) is not None:
            if not isinstance(value, dict):
                raise self._mismatch(value, place, model, type_)
            return {
                name: self.value(items, item, _Place(place, f".{name}", False), model) for name, item in value.items()
            }
        try:
            return _scalar(type_, value)
        except TypeError:
            raise self._mismatch(value, place, model, type_) from None

    def _mismatch(self, value: Any, place: _Place, model: str, type_: types.Type) -> ValueError:
        if self._unstructured:
            return ValueError(_unconvertible(value, type_))
        name = json_name(value)
        if name == "number" and type_.kind in ("int32", "int64", "int-or-string"):
            name = f"number {json.dumps(value)}"
        where = f"{types.go_name(model)}{place.go_path()}"
        return ValueError(f"json: cannot unmarshal {name} into Go struct field {where} of type {type_.go_name}")


def _zero(field: _Decoded) -> Any:
    """The value of an absent field that is always encoded."""
    if field.null:
        return None
    if field.type.kind == "struct":
        return {name: _zero(below) for name, below in _always(field.type.model).items()}
    return _ZERO.get(field.type.kind)


def _unconvertible(value: Any, type_: types.Type) -> str:
    kind = _REFLECT_KINDS[type(value)]
    match type_.kind:
        case "struct":
            return f"cannot restore struct from: {kind}"
        case "list" | "map":
            return f"cannot restore {'slice' if type_.kind == 'list' else 'map'} from {kind}"
        case "int-or-string":
            return f"json: cannot unmarshal {json_name(value)} into Go value of type int32"
        case "string" | "bool" if kind in ("int64", "float64", "bool"):
            return f"cannot convert {kind} to {type_.kind}"
    return f"unrecognized type: {type_.go_name}"


def _scalar(type_: types.Type, value: Any) -> Any:
    """The value as Go encodes it. Raises TypeError for a wrong type and ValueError for malformed text."""
    match type_.kind:
        case "quantity":
            return _quantity(value)
        case "time" | "micro-time" if isinstance(value, str):
            return _time(value, micro=type_.kind == "micro-time")
        case "bytes" if isinstance(value, str):
            return _bytes(value)
        case "string" if isinstance(value, str):
            return value
        case "bool" if isinstance(value, bool):
            return value
        case "float" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        case "int-or-string" if isinstance(value, str):
            return value
        case "int32" | "int64" | "int-or-string" if isinstance(value, int) and not isinstance(value, bool):
            limit = 2**63 if type_.kind == "int64" else 2**31
            if -limit <= value < limit:
                return value
    raise TypeError


def _quantity(value: Any) -> str:
    return quantities.canonical(value if isinstance(value, str) else json.dumps(value))


@lru_cache(maxsize=1024)  # each write of an object decodes the same times
def _time(value: str, *, micro: bool) -> str | None:
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    try:
        # fromisoformat accepts more formats than RFC 3339.
        text = value if _TIME.fullmatch(value) else ""
        shift = _CALENDAR * (text.startswith("0000") - text.startswith("9999"))
        moment = datetime.fromisoformat(f"{int(text[:4]) + shift:04}{text[4:]}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    if not shift and moment == datetime.min.replace(tzinfo=UTC):
        return None
    seconds = f"{moment.year - shift:04}-{moment:%m-%dT%H:%M:%S}"
    return f"{seconds}.{moment:%f}Z" if micro else f"{seconds}Z"


def _bytes(value: str) -> str:
    text = value.replace("\n", "").replace("\r", "")
    match = _BASE64.match(text)
    valid = match.end() if match else 0
    if valid == len(text):
        try:
            return base64.b64encode(base64.b64decode(text, validate=True)).decode()
        except binascii.Error:
            valid = len(text) - len(text) % 4
    raise ValueError(f"illegal base64 data at input byte {valid}")
