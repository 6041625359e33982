"""x-kubernetes-validations: the CEL rules in the schemas of custom resources."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema import values
from kube_sandbox.apiserver.schema.cel_library import add_library, cel, function_error

_RULES = "x-kubernetes-validations"
_MAX_KNOWN = 200
_REASONS = ("FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
_UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation"
)


@lru_cache(maxsize=1024)
def _program(rule: str) -> cel.Program:
    return cel.compile(rule)


def check(obj: Object, old: Object | None, schema: Object, *, blocked: bool) -> list[dict[str, str]]:
    """One cause per rule that the object violates. With `blocked`, the other validation has failed: then the rules are
    not evaluated, and one cause says so."""
    if not has_rules(schema):
        return []
    return [unchecked()] if blocked else list(_check(obj, old, schema, ""))


def unchecked() -> dict[str, str]:
    return {"reason": "FieldValueInvalid", "message": _UNCHECKED, "field": "<nil>"}


_KNOWN: dict[int, tuple[Object, bool]] = {}
"""By the identity of a schema, which is kept for that reason and never changes: the schema, and whether it has rules.
Each write of a custom resource asks."""


def has_rules(schema: Object) -> bool:
    known = _KNOWN.get(id(schema))
    if known is None:
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[id(schema)] = schema, _has_rules(schema)
    return known[1]


def _has_rules(schema: Object) -> bool:
    if schema.get(_RULES):
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(_has_rules(part) for part in below if isinstance(part, dict))


def _check(value: Any, old: Any, schema: Object, path: str) -> Iterator[dict[str, str]]:
    for rule in schema.get(_RULES) or ():
        if (found := _violation(rule, value, old, path)) is not None:
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
            before = values.old_item(item, old, schema)
            old_item = None if before is values.ABSENT else before
            yield from _check(item, old_item, schema["items"], f"{path}[{index}]")


def _violation(rule: Object, value: Any, old: Any, path: str) -> dict[str, str] | None:
    expression = str(rule["rule"])
    context: dict[str, Any] = {"self": value}
    if "oldSelf" in expression:
        if old is None and not rule.get("optionalOldSelf"):
            return None  # the rule is a transition rule and there is no old value
        context["oldSelf"] = old
    elif old is not None and value == old:
        return None  # an update that does not change the value need not correct it
    field = f"{path}{rule.get('fieldPath', '')}".lstrip(".") or "<nil>"
    failed = f"failed rule: {' '.join(expression.split())}"
    try:
        if _program(expression).execute(_context(context)) is True:
            return None
    except Exception as error:  # any exception of the CEL library means that the rule cannot be evaluated
        reason = f"{function_error(error)} evaluating rule: {rule.get('message') or failed}"
        return {
            "reason": "FieldValueInvalid",
            "message": f'Invalid value: "{values.json_type(value)}": {reason}',
            "field": field,
        }
    return _cause(rule, field, value, _message(rule, context) or failed)


def _message(rule: Object, context: dict[str, Any]) -> str:
    if expression := rule.get("messageExpression"):
        try:
            text = _program(str(expression)).execute(_context(context))
        except Exception:  # the real server also uses `message` when messageExpression fails
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    return str(rule.get("message") or "").strip()


def _cause(rule: Object, field: str, value: Any, message: str) -> dict[str, str]:
    reason = rule["reason"] if rule.get("reason") in _REASONS else "FieldValueInvalid"
    prefix = {"FieldValueForbidden": "Forbidden: ", "FieldValueRequired": "Required value: "}.get(reason)
    if reason == "FieldValueDuplicate":
        return {"reason": reason, "message": f"Duplicate value: {values.shown(value)}", "field": field}
    if prefix is None:
        prefix = "Invalid value: " if isinstance(value, (dict, list)) else f"Invalid value: {values.shown(value)}: "
    return {"reason": reason, "message": f"{prefix}{message}", "field": field}


def _context(variables: dict[str, Any]) -> cel.Context:
    context = cel.Context(variables=variables)
    add_library(context)
    return context
