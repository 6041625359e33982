"""Decodes objects of built-in kinds like Go.

Unknown fields are removed and reported, and wrong types are errors. The result is the object that Go would encode:
empty members are omitted, and quantities and times are in canonical form. The real server decodes into the Go types of
k8s.io/api with sigs.k8s.io/json; the texts are those of that decoder.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kube_sandbox import quantities
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.schema import types

JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_REFLECT_KINDS = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
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
    decoded = decoder.struct(model, {**obj, "apiVersion": api_version, "kind": kind}, "", "")
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


class _Decoder:
    """Decodes one object. `path` is the path of a field as in messages about unknown fields (`spec.containers[0].x`),
    `go_path` as in Go's type errors (`Container.spec.containers.x`: the struct, then the names without indices)."""

    def __init__(self, *, unstructured: bool) -> None:
        self.unknown: list[str] = []
        self._unstructured = unstructured

    def struct(self, model: str, value: Any, path: str, go_path: str) -> Object:
        known = types.fields(model)
        if value is None:
            value = {}
        for name in value:
            if name not in known and len(self.unknown) < _MAX_UNKNOWN:
                self.unknown.append(f'unknown field "{_join(path, name)}"')
        result: Object = {}
        present = {name: known[name] for name in value if name in known}
        absent = {name: field for name, field in known.items() if field.always and name not in value}
        for name, field in {**present, **absent}.items():
            where = f"{types.go_name(model)}{go_path}.{name}"
            present_value = value.get(name) is not None
            if not present_value and field.pointer and field.always:
                result[name] = None
            else:
                decoded = self.value(field.type, value.get(name), _join(path, name), where)
                # An empty managedFields resets the field ownership. All other empty lists have no meaning.
                if self._is_encoded(field, decoded, present=present_value) or (
                    name == "managedFields" and present_value
                ):
                    result[name] = decoded
        return result

    @staticmethod
    def _is_encoded(field: types.Field, decoded: Any, *, present: bool) -> bool:
        """Whether Go encodes a field, or omits it because of `omitempty`."""
        if field.always:
            return True
        if not present:
            return False
        if field.pointer or field.type.kind in ("struct", "int-or-string", "any", "time", "micro-time"):
            return True
        return decoded not in ("", 0, False, {}, [])

    def value(self, type_: types.Type, value: Any, path: str, where: str) -> Any:
        if type_.kind == "any":
            return value
        if type_.kind == "struct":
            if value is not None and not isinstance(value, dict):
                raise self._mismatch(value, where, type_)
            return self.struct(type_.model, value, path, "." + where.partition(".")[2])
        if value is None:
            return _ZERO.get(type_.kind)
        if type_.kind == "list" and type_.items is not None:
            if not isinstance(value, list):
                raise self._mismatch(value, where, type_)
            return [self.value(type_.items, item, f"{path}[{i}]", where) for i, item in enumerate(value)]
        if type_.kind == "map" and type_.items is not None:
            if not isinstance(value, dict):
                raise self._mismatch(value, where, type_)
            return {name: self.value(type_.items, item, _join(path, name), where) for name, item in value.items()}
        try:
            return _scalar(type_, value)
        except TypeError:
            raise self._mismatch(value, where, type_) from None

    def _mismatch(self, value: Any, where: str, type_: types.Type) -> ValueError:
        if self._unstructured:
            return ValueError(_unconvertible(value, type_))
        name = JSON_NAMES[type(value)]
        if name == "number" and type_.kind in ("int32", "int64", "int-or-string"):
            name = f"number {json.dumps(value)}"
        return ValueError(f"json: cannot unmarshal {name} into Go struct field {where} of type {type_.go_name}")


def _unconvertible(value: Any, type_: types.Type) -> str:
    kind = _REFLECT_KINDS[type(value)]
    match type_.kind:
        case "struct":
            return f"cannot restore struct from: {kind}"
        case "list" | "map":
            return f"cannot restore {'slice' if type_.kind == 'list' else 'map'} from {kind}"
        case "int-or-string":
            return f"json: cannot unmarshal {JSON_NAMES[type(value)]} into Go value of type int32"
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


def _time(value: str, *, micro: bool) -> str | None:
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    try:
        # fromisoformat accepts more formats than RFC 3339.
        moment = datetime.fromisoformat(value if _TIME.fullmatch(value) else "").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    if moment == datetime.min.replace(tzinfo=UTC):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment:%f}Z" if micro else f"{moment:%Y-%m-%dT%H:%M:%S}Z"


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
