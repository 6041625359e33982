"""Formats values as the messages of the real server do: Go's `%q`, `%v` and names of types, and lists of errors."""

import json
from collections.abc import Iterable
from typing import Any

TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
"""The Go type into which the decoder of the real server first reads each object."""

GO_TYPES = {
    dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64",
    float: "float64", type(None): "%!s(<nil>)",
}  # fmt: skip
"""The Go types of decoded JSON values, by their Python types."""

_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool"}


def json_name(value: object) -> str:
    """The JSON type of a value as Go's decoder names it: `object`, `array`, `string`, `bool` or `number`."""
    return _JSON_NAMES.get(type(value), "number")


def quoted(text: str) -> str:
    """A string as `%q` prints it."""
    return json.dumps(text, ensure_ascii=False)


def quoted_list(texts: Iterable[str]) -> str:
    """A list of strings, as `%q` prints it: `["a" "b"]`."""
    return f"[{' '.join(quoted(text) for text in texts)}]"


def aggregated(errors: Iterable[str]) -> str:
    """Several errors as one text, without repetitions. Brackets enclose two or more (apimachinery's
    `errors.Aggregate`)."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def value_text(value: Any) -> str:
    """A JSON value as `%v` prints it: `map[a:1 b:[x y]]`."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{value_text(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(value_text(item) for item in value)}]"
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
    return str(value)
