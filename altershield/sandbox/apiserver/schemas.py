"""Structural schemas of custom resources: unknown fields fall out, defaults come in, the rest must be valid.

Texts and rules are those of `k8s.io/apiextensions-apiserver` (`pkg/apiserver/schema`, `pkg/apiserver/validation`) and
of the OpenAPI validator it uses (`k8s.io/kube-openapi`, `pkg/validation`).
"""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from altershield.sandbox.apiserver import cel_rules, schema_formats
from altershield.sandbox.apiserver.attributes import Object
from altershield.sandbox.apiserver.registry import CustomType

Cause = dict[str, str]

_TOP = ("apiVersion", "kind", "metadata")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"


def prune(obj: Object, custom: CustomType) -> list[str]:
    """Drop what the schema does not name, in place; a message per dropped field."""
    unknown: list[str] = []
    if not custom.preserve_unknown:
        _prune(obj, custom.schema, "", unknown, top=True)
    return [f'unknown field "{path}"' for path in sorted(unknown)]


def _prune(value: Any, schema: Object, path: str, unknown: list[str], *, top: bool = False) -> None:
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        top = top or bool(schema.get(_EMBEDDED))
        for key in list(value):
            below = f"{path}.{key}" if path else key
            if top and key in _TOP:
                continue  # whatever the schema says of metadata
            if key in properties:
                _prune(value[key], properties[key], below, unknown)
            elif isinstance(additional, dict):
                _prune(value[key], additional, below, unknown)
            elif not schema.get(_PRESERVE) and additional is not True:
                unknown.append(below)
                del value[key]
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            _prune(item, schema["items"], f"{path}[{index}]", unknown)


def apply_defaults(value: Any, schema: Object) -> None:
    """Set the defaults of what is missing, in place. A null where none may be counts as missing."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        below = {key: properties.get(key) or additional for key in (*properties, *value)}
        for key, part in below.items():
            if not isinstance(part, dict):
                continue
            if key in value and value[key] is None and not part.get("nullable") and part.get("type"):
                del value[key]
            if key not in value and "default" in part and key in properties:
                value[key] = copy.deepcopy(part["default"])
            if key in value:
                apply_defaults(value[key], part)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            apply_defaults(item, schema["items"])


def validate(
    obj: Object, old: Object | None, custom: CustomType, subresource: str, earlier: list[Cause]
) -> list[Cause]:
    """What is wrong with a custom resource, beside what is known `earlier`. A write of status is judged by its status
    alone; a part of an update that stays as it was is not judged again."""
    schema = custom.schema
    if subresource == "status":
        status = (schema.get("properties") or {}).get("status", {})
        before = (old or {}).get("status", ABSENT)
        causes = [
            {**found, "field": f"status.{found['field']}"}
            for found in _check(obj.get("status", {}), status, "", before)
        ]
        value: Object = {"status": obj.get("status")}
    else:
        value = {key: part for key, part in obj.items() if key not in _TOP}
        causes = list(_check(value, schema, "", ABSENT if old is None else old, top=True))
    causes += list(_list_types(value, schema, ""))
    if custom.scale and subresource != "status":
        causes += _scale_fields(obj, custom.scale)
    return causes + cel_rules.check(obj, old, schema, blocked=_blocks([*earlier, *causes]))


_BLOCKING = frozenset(
    ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"]
)
"""Faults after which rules are not evaluated."""

ABSENT = object()


def _blocks(causes: list[Cause]) -> bool:
    return any(found["reason"] in _BLOCKING for found in causes)


def cause(reason: str, field: str, message: str) -> Cause:
    return {"reason": reason, "message": message, "field": field}


def _invalid(field: str, value: Any, why: str) -> Cause:
    return cause("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {why}")


def shown(value: Any) -> str:
    """A value as field errors print it."""
    if value is None:
        return "null"
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
    """The name of a value's type in JSON; a whole float is an integer."""
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return next(name for type_, name in _JSON_TYPES if isinstance(value, type_))


def _check(value: Any, schema: Object, path: str, old: Any = ABSENT, *, top: bool = False) -> Iterator[Cause]:
    """Type, bounds, enum and the parts of one value, unless it is what it was."""
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
        yield _invalid("<nil>", "", f"Checked value must be of type integer (default format) in {path}")
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
        yield _invalid(path, value, f"{path} in body should be at least {shortest} chars long")
    elif pattern and not _search(pattern, value):
        yield _invalid(path, value, f"{path} in body should match '{pattern}'")
    format_ = schema.get("format")
    if format_ and not schema_formats.fits(format_, value):
        yield cause(
            "FieldValueTypeInvalid",
            path,
            f"Invalid value: {shown(value)}: {path} in body must be of type {format_}: {shown(value)}",
        )


def _search(pattern: str, value: str) -> bool:
    try:
        return re.search(_python_pattern(pattern), value) is not None
    except re.error:
        return True  # a pattern that only Go knows: the real server would judge, this one cannot


def _python_pattern(pattern: str) -> str:
    r"""A Go pattern for Python: `$` and `\z` only match the very end there."""
    return re.sub(r"(?<!\\)\$(?=$|\)|\|)", r"\\Z", pattern).replace(r"\z", r"\Z")


def _check_number(value: float, schema: Object, path: str) -> Iterator[Cause]:
    largest, smallest, step = schema.get("maximum"), schema.get("minimum"), schema.get("multipleOf")
    if largest is not None:
        if schema.get("exclusiveMaximum") and value >= largest:
            yield _invalid(path, value, f"{path} in body should be less than {largest}")
        elif value > largest:
            yield _invalid(path, value, f"{path} in body should be less than or equal to {largest}")
    if smallest is not None:
        if schema.get("exclusiveMinimum") and value <= smallest:
            yield _invalid(path, value, f"{path} in body should be greater than {smallest}")
        elif value < smallest:
            yield _invalid(path, value, f"{path} in body should be greater than or equal to {smallest}")
    if step and abs(value / step - round(value / step)) > 1e-9:
        yield _invalid(path, value, f"{path} in body should be a multiple of {step}")
    ranges = {"int32": 31, "int64": 63}
    if (bits := ranges.get(schema.get("format", ""))) and not -(2**bits) <= value < 2**bits:
        yield _invalid("<nil>", "", f"Checked value must be of type integer with format {schema['format']} in {path}")


def _check_array(value: list[Any], schema: Object, path: str, old: Any) -> Iterator[Cause]:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _check(item, items, f"{path}[{index}]", counterpart(item, old, schema))
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        yield cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"{path} in body should have at least {least} items")
    if schema.get("uniqueItems") and len({shown(item) for item in value}) < len(value):
        yield _invalid(path, value, f"{path} in body shouldn't contain duplicates")


def _check_object(value: Object, schema: Object, path: str, old: Any, *, top: bool) -> Iterator[Cause]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"{path} in body should have at least {least} properties")
    for key in schema.get("required") or ():
        if key not in value and not (top and key in _TOP):
            yield cause("FieldValueRequired", f"{path}.{key}" if path else key, "Required value")
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        before = old.get(key, ABSENT) if isinstance(old, dict) else ABSENT
        if key in properties:
            yield from _check(item, properties[key], below, before)
        elif isinstance(additional, dict):
            yield from _check(item, additional, below, before)


def same(value: Any, old: Any) -> bool:
    """Whether two values are the same JSON (1 is not true)."""
    return bool(value == old) and shown(value) == shown(old)


def counterpart(item: Any, old: Any, schema: Object) -> Any:
    """The same item of a list's old state: only items of maps have an identity."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return ABSENT
    alike = (other for other in old if isinstance(other, dict) and all(other.get(k) == item.get(k) for k in keys))
    return next(alike, ABSENT)


def _check_combinations(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    """allOf, anyOf, oneOf and not: they only judge, they add nothing to the structure."""

    def fits(part: Object) -> bool:
        return next(_check(value, part, path), None) is None

    for part in schema.get("allOf") or ():
        yield from _check(value, part, path)
    if (parts := schema.get("anyOf")) and not any(map(fits, parts)):
        yield cause(
            "FieldValueInvalid",
            path or "<nil>",
            f'Invalid value: "": "{path}" must validate at least one schema (anyOf)',
        )
        yield from _best(value, parts, path)
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
                yield from _best(value, parts, path)
    if (part := schema.get("not")) and fits(part):
        yield cause(
            "FieldValueInvalid", path or "<nil>", f'Invalid value: "": "{path}" must not validate the schema (not)'
        )


def _best(value: Any, parts: list[Object], path: str) -> list[Cause]:
    """The faults of the alternative that comes nearest."""
    return min((list(_check(value, part, path)) for part in parts), key=len)


def _list_types(value: Any, schema: Object, path: str) -> Iterator[Cause]:
    """Lists that are sets or maps hold each item or key once."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            below = properties.get(key) or (additional if isinstance(additional, dict) else None)
            if below:
                yield from _list_types(item, below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        yield from _repeated(value, schema, path)
        if isinstance(schema.get("items"), dict):
            for index, item in enumerate(value):
                yield from _list_types(item, schema["items"], f"{path}[{index}]")


def _repeated(value: list[Any], schema: Object, path: str) -> Iterator[Cause]:
    identity = _identity(schema)
    if identity is None:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        found = identity(item)
        if found is None:
            continue
        if (text := shown(found)) in seen:
            yield cause("FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {text}")
        seen.add(text)


def _identity(schema: Object) -> Callable[[Any], Any] | None:
    """What tells items of a set or map apart."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return lambda item: item
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or []

            def of_keys(item: Any) -> Any:
                if not isinstance(item, dict):
                    return None
                # without any of its keys an item is reported as incomplete, not as a duplicate
                return {key: item[key] for key in keys if key in item} or None

            return of_keys
    return None


def _go_type(value: Any) -> str:
    names = {"boolean": "bool", "integer": "int64", "number": "float64", "string": "string", "array": "[]interface {}"}
    return names.get(json_type(value), "map[string]interface {}")


def _scale_fields(obj: Object, scale: Object) -> list[Cause]:
    path = str(scale.get("specReplicasPath", ""))
    value: Any = obj
    for part in path.strip(".").split("."):
        if value is None:
            return []
        if not isinstance(value, dict):
            why = f"{path} accessor error: {value} is of the type {_go_type(value)}, expected map[string]interface{{}}"
            return [_invalid(path, 0, why)]
        value = value.get(part)
    if value is None:
        return []
    if not isinstance(value, int) or isinstance(value, bool):
        return [_invalid(path, 0, f"{path} accessor error: {value} is of the type {_go_type(value)}, expected int64")]
    return [] if value >= 0 else [_invalid(path, value, "should be a non-negative integer")]
