"""Decodes built-in kinds from protobuf, which `kubectl create` and other typed clients send, to JSON objects.

The envelope and the encoding of times, quantities and free JSON are those of `k8s.io/apimachinery`.
"""

import base64
import datetime
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.http.protobuf_fields import messages
from kube_sandbox.apiserver.schema import types

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_OTHER_MODELS = {"DeleteOptions": "V1DeleteOptions"}
_MAX_DEPTH = 100


def decode(body: bytes) -> Object:
    """The object in a protobuf body. Raises ValueError for a malformed body and LookupError for an unknown kind."""
    if not body.startswith(_MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    named = dict(_fields(_bytes(envelope.get(1, b""))))
    api_version, kind = _text(named.get(1, b"")), _text(named.get(2, b""))
    model = _OTHER_MODELS.get(kind) or types.model_of(api_version, kind)
    if model is None or model not in messages():
        raise LookupError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(model, _bytes(envelope.get(2, b"")), 0)}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The field numbers of a message and their values: integers or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        value: int | bytes
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
            case 1:
                value, position = data[position : position + 8], position + 8
            case 2:
                size, position = _varint(data, position)
                value, position = data[position : position + size], position + size
            case 5:
                value, position = data[position : position + 4], position + 4
            case wire_type:
                raise ValueError(f"proto: illegal wireType {wire_type}")
        if position > len(data):
            raise ValueError("unexpected EOF")
        yield tag >> 3, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("unexpected EOF")


def _message(model: str, data: bytes, depth: int) -> Object:
    """A message as a JSON object, including its empty members."""
    if depth > _MAX_DEPTH:
        raise ValueError("exceeded maximum recursion depth")
    numbers, known = messages()[model], types.fields(model)
    obj: Object = {}
    for number, value in _fields(data):
        name = numbers.get(number)
        if isinstance(name, Mapping):
            for inner, found in _fields(_bytes(value)):
                if inner in name:
                    _set(obj, name[inner], known[name[inner]].type, found, depth)
        elif name is not None and name in known:
            _set(obj, name, known[name].type, value, depth)
    return obj


def _set(obj: Object, name: str, type_: types.Type, value: int | bytes, depth: int) -> None:
    if type_.kind == "list" and type_.items is not None:
        obj.setdefault(name, []).append(_value(type_.items, value, depth))
    elif type_.kind == "map" and type_.items is not None:
        entry = dict(_fields(_bytes(value)))
        obj.setdefault(name, {})[_text(entry.get(1, b""))] = _value(type_.items, entry.get(2, b""), depth)
    else:
        obj[name] = _value(type_, value, depth)


def _value(type_: types.Type, value: int | bytes, depth: int) -> Any:
    match type_.kind:
        case "struct":
            return _message(type_.model, _bytes(value), depth + 1)
        case "string":
            return _text(value)
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value
        case "float":
            return struct.unpack("<d", _bytes(value).rjust(8, b"\0"))[0]
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "quantity":
            return _text(dict(_fields(_bytes(value))).get(1, b""))
        case "int-or-string":
            found = dict(_fields(_bytes(value)))
            return _text(found.get(3, b"")) if found.get(1) else found.get(2, 0)
        case "time" | "micro-time":
            return _time(dict(_fields(_bytes(value))), micro=type_.kind == "micro-time")
        case "list":  # the value of a map, for example `extra` of a user
            return [_value(type_.items, item, depth) for _, item in _fields(_bytes(value))] if type_.items else []
    raw = dict(_fields(_bytes(value))).get(1)
    return orjson.loads(raw) if isinstance(raw, bytes) and raw else None


def _time(found: Mapping[int, int | bytes], *, micro: bool) -> str | None:
    seconds, nanos = found.get(1, 0), found.get(2, 0)
    if not found or not isinstance(seconds, int) or not isinstance(nanos, int):
        return None
    moment = datetime.datetime.fromtimestamp(seconds - (1 << 64 if seconds >= 1 << 63 else 0), datetime.UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06}Z" if micro else f"{text}Z"


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("proto: wrong wireType")


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
