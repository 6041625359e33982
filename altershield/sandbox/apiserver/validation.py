"""Validation of built-in kinds (the API types' owner replaces this stand-in)."""

from collections.abc import Sequence

from altershield.sandbox.apiserver.attributes import Object
from altershield.sandbox.apiserver.errors import StatusError

Cause = dict[str, str]


def validate(obj: Object, old: Object | None) -> list[Cause]:
    return []


def validate_metadata(obj: Object, old: Object | None) -> list[Cause]:
    return []


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return StatusError(422, f'{qualified} "{name}" is invalid: {joined}', details={**details, "causes": list(causes)})
