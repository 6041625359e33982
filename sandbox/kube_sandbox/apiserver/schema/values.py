"""Validates values with a schema: type, bounds, enum, pattern, format and nested values.

Texts and rules are those of the OpenAPI validator that kube-apiserver uses (`k8s.io/kube-openapi`, `pkg/validation`).
"""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema import formats

Cause = dict[str, str]

_INT_OR_STRING = "x-kubernetes-int-or-string"

ABSENT = object()
"""Stands for a missing old value."""

OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
"""Fields of every object. Schemas need not specify them."""


def cause(reason: str, field: str, message: str) -> Cause:
    return {"reason": reason, "message": message, "field": field}


def invalid(field: str, value: Any, why: str) -> Cause:
    return cause("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {why}")


def shown(value: Any) -> str:
    """The text of a value in field errors."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


_JSON_TYPES: list[tuple[type, str]] = [
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
]


def json_type(value: Any) -> str:
    """The JSON type of a value. A float without a fraction is an integer."""
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return next(name for type_, name in _JSON_TYPES if isinstance(value, type_))


def check(value: Any, schema: Object, path: str, old: Any = ABSENT, *, top: bool = False) -> Iterator[Cause]:
    """The causes that make a value invalid. A value that is the same as the old one is not checked. `top` marks a whole
    object, which need not contain the fields in OBJECT_FIELDS."""
    if old is not ABSENT and same(value, old):
        return
    type_, found = schema.get("type", ""), json_type(value)
    name = path or "<nil>"
    if value is None:
        if not schema.get("nullable") and (type_ or schema.get(_INT_OR_STRING)):
            wanted = type_ or "integer,string"
            yield cause(
                "FieldValueTypeInvalid",
                name,
                f'Invalid value: "null": {path} in body must be of type {wanted}: "null"',
            )
        return
    if schema.get(_INT_OR_STRING):
        wanted, fits = "integer,string", found in ("integer", "string")
    else:
        wanted, fits = type_, not type_ or found == type_ or (type_ == "number" and found == "integer")
    if not fits:
        yield cause(
            "FieldValueTypeInvalid",
            name,
            f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"',
        )
        if not (type_ == "integer" and found == "number"):
            return
        yield invalid("<nil>", "", f"Checked value must be of type integer (default format) in {path}")
    yield from _check_enum(value, schema, path)
    if isinstance(value, str):
        yield from _check_string(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _check_number(value, schema, path)
    elif isinstance(value, list):
        yield from _check_array(value, schema, path, old)
    elif isinstance(value, dict):
        yield from _check_object(value, schema, path, old, top=top)
    yield from _check_combinations(value, schema, path)


def _check_enum(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    enum = schema.get("enum")
    if enum and not any(value == allowed and isinstance(value, bool) == isinstance(allowed, bool) for allowed in enum):
        supported = ", ".join(f'"{item}"' if isinstance(item, str) else shown(item) for item in enum)
        yield cause("FieldValueNotSupported", path, f"Unsupported value: {shown(value)}: supported values: {supported}")


def _check_string(value: str, schema: Object, path: str) -> Iterator[Cause]:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield cause("FieldValueTooLong", path, f"Too long: may not be more than {longest} bytes")
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    elif pattern and not _search(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    format_ = schema.get("format")
    if format_ and not formats.fits(format_, value):
        yield cause(
            "FieldValueTypeInvalid",
            path,
            f"Invalid value: {shown(value)}: {path} in body must be of type {format_}: {shown(value)}",
        )


def _search(pattern: str, value: str) -> bool:
    try:
        return re.search(_python_pattern(pattern), value) is not None
    except re.error:
        return True  # Python does not support the pattern; only Go does


def _python_pattern(pattern: str) -> str:
    r"""A Go pattern in Python's syntax. In Go, `$` and `\z` match only at the end of the text."""
    return re.sub(r"(?<!\\)\$(?=$|\)|\|)", r"\\Z", pattern).replace(r"\z", r"\Z")


def _check_number(value: float, schema: Object, path: str) -> Iterator[Cause]:
    largest, smallest, step = schema.get("maximum"), schema.get("minimum"), schema.get("multipleOf")
    if largest is not None:
        if schema.get("exclusiveMaximum") and value >= largest:
            yield invalid(path, value, f"{path} in body should be less than {largest}")
        elif value > largest:
            yield invalid(path, value, f"{path} in body should be less than or equal to {largest}")
    if smallest is not None:
        if schema.get("exclusiveMinimum") and value <= smallest:
            yield invalid(path, value, f"{path} in body should be greater than {smallest}")
        elif value < smallest:
            yield invalid(path, value, f"{path} in body should be greater than or equal to {smallest}")
    if step and abs(value / step - round(value / step)) > 1e-9:
        yield invalid(path, value, f"{path} in body should be a multiple of {step}")
    ranges = {"int32": 31, "int64": 63}
    if (bits := ranges.get(schema.get("format", ""))) and not -(2**bits) <= value < 2**bits:
        yield invalid("<nil>", "", f"Checked value must be of type integer with format {schema['format']} in {path}")


def _check_array(value: list[Any], schema: Object, path: str, old: Any) -> Iterator[Cause]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from check(item, items, f"{path}[{index}]", old_item(item, old, schema))
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        yield cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    if schema.get("uniqueItems") and len({shown(item) for item in value}) < len(value):
        yield invalid(path, value, f"{path} in body shouldn't contain duplicates")


def _check_object(value: Object, schema: Object, path: str, old: Any, *, top: bool) -> Iterator[Cause]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} properties")
    for key in schema.get("required") or ():
        if key not in value and not (top and key in OBJECT_FIELDS):
            yield cause("FieldValueRequired", f"{path}.{key}" if path else key, "Required value")
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        before = old.get(key, ABSENT) if isinstance(old, dict) else ABSENT
        if key in properties:
            yield from check(item, properties[key], below, before)
        elif isinstance(additional, dict):
            yield from check(item, additional, below, before)


def same(value: Any, old: Any) -> bool:
    """Whether two values are the same JSON value (1 is not true)."""
    return bool(value == old) and shown(value) == shown(old)


def old_item(item: Any, old: Any, schema: Object) -> Any:
    """The item with the same keys in the old list, or ABSENT. Only items of lists with the type map have keys."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return ABSENT
    alike = (other for other in old if isinstance(other, dict) and all(other.get(k) == item.get(k) for k in keys))
    return next(alike, ABSENT)


def _check_combinations(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    """Check allOf, anyOf, oneOf and not. They restrict values; they do not define fields."""

    def fits(part: Object) -> bool:
        return next(check(value, part, path), None) is None

    for part in schema.get("allOf") or ():
        yield from check(value, part, path)
    if (parts := schema.get("anyOf")) and not any(map(fits, parts)):
        yield cause(
            "FieldValueInvalid",
            path or "<nil>",
            f'Invalid value: "": "{path}" must validate at least one schema (anyOf)',
        )
        yield from _fewest_causes(value, parts, path)
    if parts := schema.get("oneOf"):
        count = sum(map(fits, parts))
        if count != 1:
            found = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            yield cause(
                "FieldValueInvalid",
                path or "<nil>",
                f'Invalid value: "": "{path}" must validate one and only one schema (oneOf). {found}',
            )
            if count == 0:
                yield from _fewest_causes(value, parts, path)
    if (part := schema.get("not")) and fits(part):
        yield cause(
            "FieldValueInvalid", path or "<nil>", f'Invalid value: "": "{path}" must not validate the schema (not)'
        )


def _fewest_causes(value: Any, parts: list[Object], path: str) -> list[Cause]:
    """The causes of the alternative with the fewest causes."""
    return min((list(check(value, part, path)) for part in parts), key=len)
