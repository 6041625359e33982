"""The OpenAPI v2 document in protobuf. kubectl reads it only in this form, to validate `kind: List`.

Message and field numbers are those of gnostic's `openapi.v2.Document`. Parts that kubectl does not read (paths, bounds,
formats) are omitted.
"""

from collections.abc import Iterable, Mapping

import orjson

from kube_sandbox.apiserver.attributes import Object

REQUESTED_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of the response. It differs from the one in requests, which is not a valid media type."""


def encode(document: Object) -> bytes:
    """The document with its definitions."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = _named(1, document["definitions"])
    return _text(1, document["swagger"]) + _field(2, info) + _field(8, b"") + _field(9, definitions)


def _schema(schema: Object) -> bytes:
    parts = [_text(1, schema.get("$ref", "")), _text(4, schema.get("description", ""))]
    parts += [_text(19, name) for name in schema.get("required") or ()]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        parts.append(_field(21, _field(1, _schema(additional))))
    if type_ := schema.get("type"):
        parts.append(_field(22, _text(1, type_)))
    if isinstance(items := schema.get("items"), dict):
        parts.append(_field(23, _field(1, _schema(items))))
    if properties := schema.get("properties"):
        parts.append(_field(25, _named(1, properties)))
    parts += _extensions(schema)
    return b"".join(parts)


def _named(number: int, schemas: Mapping[str, Object]) -> bytes:
    return b"".join(
        _field(number, _text(1, name) + _field(2, _schema(schema))) for name, schema in sorted(schemas.items())
    )


def _extensions(schema: Object) -> Iterable[bytes]:
    """The `x-` members. Their values are encoded as YAML; JSON is valid YAML."""
    for name, value in schema.items():
        if name.startswith("x-"):
            yield _field(31, _text(1, name) + _field(2, _text(2, orjson.dumps(value).decode())))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode()) if text else b""


def _field(number: int, value: bytes) -> bytes:
    """One length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
