"""Checks bound requests as bean validation does. All violations are reported at once, one line each."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from kube_sandbox.altershield_server.binding import Body, Field
from kube_sandbox.altershield_server.errors import RefusedError
from kube_sandbox.altershield_server.vocabulary import Code


def validate(fields: Sequence[Field], request: Body) -> None:
    """Raise RefusedError (101) with a line `field text` for each violation."""
    lines = [line for field in fields for line in _violations(field, request[field.name], field.name)]
    if lines:
        raise RefusedError(Code.ILLEGAL_ARGUMENT, "\n".join(lines))


def _violations(field: Field, value: Any, name: str) -> Iterator[str]:
    if field.not_blank and (value is None or not value.strip()):
        yield f"{name} must not be blank"
    if field.not_null and value is None:
        yield f"{name} must not be null"
    if isinstance(value, str):
        yield from _text_violations(field, value, name)
    if field.minimum is not None and value is not None and value < field.minimum:
        yield f"{name} must be greater than or equal to {field.minimum}"
    if field.fields and isinstance(value, list):
        for index, each in enumerate(value):
            for inner in field.fields:
                yield from _violations(inner, each[inner.name], f"{name}[{index}].{inner.name}")


def _text_violations(field: Field, value: str, name: str) -> Iterator[str]:
    size = len(value.encode())
    if size < field.min_bytes:
        yield f"{name} must have at least {field.min_bytes} bytes in UTF-8"
    if field.max_bytes is not None and size > field.max_bytes:
        yield f"{name} must have at most {field.max_bytes} bytes in UTF-8"
    if field.is_json and value.strip() and not _is_json(value):
        yield f"{name} must be JSON"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
