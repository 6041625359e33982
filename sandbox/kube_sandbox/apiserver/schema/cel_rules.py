"""x-kubernetes-validations: CEL rules of custom resources' schemas."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import cel
import orjson
from cel import stdlib

from kube_sandbox.apiserver.attributes import Object

_RULES = "x-kubernetes-validations"
_REASONS = {
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueRequired": "FieldValueRequired",
    "FieldValueDuplicate": "FieldValueDuplicate",
}
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation"
)


@lru_cache(maxsize=1024)
def _program(rule: str) -> cel.Program:
    return cel.compile(rule)


def check(obj: Object, old: Object | None, schema: Object, *, blocked: bool) -> list[dict[str, str]]:
    """The rules that an object breaks; where its structure is wrong already, only the note that they wait."""
    if not has_rules(schema):
        return []
    return [unchecked()] if blocked else list(_check(obj, old, schema, ""))


def unchecked() -> dict[str, str]:
    return {"reason": "FieldValueInvalid", "message": _UNCHECKED, "field": "<nil>"}


def has_rules(schema: Object) -> bool:
    if schema.get(_RULES):
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(has_rules(part) for part in below if isinstance(part, dict))


def _check(value: Any, old: Any, schema: Object, path: str) -> Iterator[dict[str, str]]:
    for rule in schema.get(_RULES) or ():
        if (found := _broken(rule, value, old, schema, path)) is not None:
            yield found
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            below = properties.get(key) or (additional if isinstance(additional, dict) else None)
            if below:
                before = old.get(key) if isinstance(old, dict) else None
                yield from _check(item, before, below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            before = _counterpart(item, old, schema)
            yield from _check(item, before, schema["items"], f"{path}[{index}]")


def _counterpart(item: Any, old: Any, schema: Object) -> Any:
    """The same item of a list's old state; only maps have items with an identity."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    return next(
        (other for other in old if isinstance(other, dict) and all(other.get(key) == item.get(key) for key in keys)),
        None,
    )


def _broken(rule: Object, value: Any, old: Any, schema: Object, path: str) -> dict[str, str] | None:
    expression = str(rule["rule"])
    context: dict[str, Any] = {"self": value}
    if "oldSelf" in expression:
        if old is None and not rule.get("optionalOldSelf"):
            return None  # a transition rule: nothing to compare with
        context["oldSelf"] = old
    elif old is not None and value == old:
        return None  # broken before already: an update need not mend it
    try:
        fine = _program(expression).execute(_context(context)) is True
        message = ""
    except Exception as error:  # whatever the expression does to the library is a broken rule
        fine, message = False, f"rule evaluation error: {error}"
    if fine:
        return None
    field = f"{path}{rule.get('fieldPath', '')}".lstrip(".") or "<nil>"
    message = message or _message(rule, context) or f"failed rule: {' '.join(expression.split())}"
    return _cause(rule, field, value, schema, message)


def _message(rule: Object, context: dict[str, Any]) -> str:
    if expression := rule.get("messageExpression"):
        try:
            text = _program(str(expression)).execute(_context(context))
        except Exception:  # then the plain message counts, as in the real server
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    return str(rule.get("message") or "").strip()


def _cause(rule: Object, field: str, value: Any, schema: Object, message: str) -> dict[str, str]:
    reason = _REASONS.get(str(rule.get("reason", "")), "FieldValueInvalid")
    prefix = {"FieldValueForbidden": "Forbidden: ", "FieldValueRequired": "Required value: "}.get(reason)
    if reason == "FieldValueDuplicate":
        prefix = f"Duplicate value: {_shown(value)}"
        return {"reason": reason, "message": prefix, "field": field}
    if prefix is None:
        prefix = "Invalid value: " if isinstance(value, (dict, list)) else f"Invalid value: {_shown(value)}: "
    return {"reason": reason, "message": f"{prefix}{message}", "field": field}


def _shown(value: Any) -> str:
    return "null" if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _context(variables: dict[str, Any]) -> cel.Context:
    context = cel.Context(variables=variables)
    stdlib.add_stdlib_to_context(context)
    return context
