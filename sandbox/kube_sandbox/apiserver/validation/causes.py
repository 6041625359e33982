"""Field errors with the texts of the API server (apimachinery, pkg/util/validation/field).

A cause is an entry in `Status.details.causes`: reason, message, field.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kube_sandbox.apiserver import gotext

Cause = dict[str, str]
Causes = Iterator[Cause]

IMMUTABLE = "field is immutable"


def _cause(reason: str, path: str, kind: str, value: Any = ..., detail: str = "") -> Cause:
    message = kind if value is ... else f"{kind}: {shown(value)}"
    return {"reason": reason, "message": f"{message}: {detail}" if detail else message, "field": path}


def shown(value: Any) -> str:
    """The text of a value in these messages: JSON, with the escapes of Go."""
    if isinstance(value, str):
        return gotext.quoted(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def required(path: str, detail: str = "") -> Cause:
    return _cause("FieldValueRequired", path, "Required value", detail=detail)


def invalid(path: str, value: Any, detail: str) -> Cause:
    return _cause("FieldValueInvalid", path, "Invalid value", value, detail)


def forbidden(path: str, detail: str) -> Cause:
    return _cause("FieldValueForbidden", path, "Forbidden", detail=detail)


def unsupported(path: str, value: Any, supported: Sequence[str]) -> Cause:
    listed = ", ".join(gotext.quoted(name) for name in supported)
    return _cause("FieldValueNotSupported", path, "Unsupported value", value, f"supported values: {listed}")


def duplicate(path: str, value: Any) -> Cause:
    return _cause("FieldValueDuplicate", path, "Duplicate value", value)


def not_found(path: str, value: Any) -> Cause:
    return _cause("FieldValueNotFound", path, "Not found", value)


def too_long(path: str, limit: int) -> Cause:
    return _cause("FieldValueTooLong", path, "Too long", detail=f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> Cause:
    return _cause("FieldValueTooMany", path, "Too many", count, f"must have at most {limit} items")


def invalid_each(path: str, value: Any, details: Iterable[str]) -> Causes:
    """One cause per error text about the same value."""
    for detail in details:
        yield invalid(path, value, detail)


def non_empty(path: str, value: Any) -> Causes:
    if not value:
        yield required(path)


def one_of(path: str, value: Any, supported: Sequence[str]) -> Causes:
    if value not in supported:
        yield unsupported(path, value, supported)


def optional(path: str, value: Any, rule: Callable[[Any], Iterable[str]]) -> Causes:
    """Validate a value, unless it is missing or empty. The rule returns error texts about a value."""
    if value:
        yield from invalid_each(path, value, rule(value))


def mandatory(path: str, value: Any, rule: Callable[[Any], Iterable[str]]) -> Causes:
    yield from non_empty(path, value)
    yield from optional(path, value, rule)


def non_negative(path: str, value: int | None) -> Causes:
    if value is not None and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def immutable(path: str, new: Any, old: Any) -> Causes:
    if new != old:
        yield invalid(path, new, IMMUTABLE)
