"""Binds JSON bodies to fields as Jackson does: unknown fields are ignored, scalars are converted, other types are
refused."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import orjson

from kube_sandbox.altershield_server.errors import BadRequestError

Body = dict[str, Any]


class Type(Enum):
    TEXT = auto()
    INTEGER = auto()
    FLAG = auto()
    """true or false; a missing or null value is the default."""
    OPTIONAL_FLAG = auto()
    DATE = auto()
    """Unix milliseconds, or ISO 8601 with a zone; bound to milliseconds."""
    TEXTS = auto()
    OBJECT = auto()
    OBJECTS = auto()
    CONSTANT = auto()
    """A name of `Field.constants`; any other text is HTTP status 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a request with its rules. Lengths are in bytes of UTF-8."""

    name: str
    type: Type = Type.TEXT
    not_blank: bool = False
    not_null: bool = False
    min_bytes: int = 0
    max_bytes: int | None = None
    minimum: int | None = None
    is_json: bool = False
    default: Any = None
    constants: frozenset[str] = frozenset()
    fields: Sequence["Field"] = ()
    """The fields of each object of a list (OBJECTS)."""


def parse(text: str) -> Body:
    """The JSON object of a body. Raises BadRequestError."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    return body


def bind(fields: Sequence[Field], body: Body) -> Body:
    """The values of the fields, with defaults for missing ones. Raises BadRequestError for a wrong type."""
    return {field.name: _bound(field, body[field.name]) if field.name in body else field.default for field in fields}


def _bound(field: Field, value: Any) -> Any:
    if value is None:
        return {Type.INTEGER: 0, Type.FLAG: False}.get(field.type)  # Java's primitives have no null
    match field.type:
        case Type.TEXT:
            return _text(field, value)
        case Type.INTEGER:
            return _integer(field, value)
        case Type.FLAG | Type.OPTIONAL_FLAG:
            return _flag(field, value)
        case Type.DATE:
            return _date(field, value)
        case Type.TEXTS:
            return [None if each is None else _text(field, each) for each in _list(field, value)]
        case Type.OBJECT:
            return _object(field, value)
        case Type.OBJECTS:
            objects = [_object(field, each) for each in _list(field, value)]
            return [bind(field.fields, each) for each in objects] if field.fields else objects
        case Type.CONSTANT:
            if value not in field.constants:
                raise _wrong(field, value)
            return value


def _text(field: Field, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return orjson.dumps(value).decode()
    raise _wrong(field, value)


def _integer(field: Field, value: Any) -> int:
    if isinstance(value, bool):
        raise _wrong(field, value)
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(field, value) from error
    if not -(2**31) <= number < 2**31:
        raise _wrong(field, value)
    return number


def _flag(field: Field, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return bool(value.lower() == "true")
    raise _wrong(field, value)


def _date(field: Field, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        moment = datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise _wrong(field, value) from error
    if moment.tzinfo is None:
        raise _wrong(field, value)
    return int(moment.timestamp() * 1000)


def _list(field: Field, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(field, value)
    return value


def _object(field: Field, value: Any) -> Body:
    if not isinstance(value, dict):
        raise _wrong(field, value)
    return value


def _wrong(field: Field, value: Any) -> BadRequestError:
    return BadRequestError(f"{field.name} cannot be read from a value of type {type(value).__name__}")
