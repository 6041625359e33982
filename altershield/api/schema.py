"""Annotations of field types from which the schemas of the CRDs are generated."""

from typing import Any

import msgspec


def doc(text: str) -> msgspec.Meta:
    """The description of a field in `kubectl explain` and in the reference."""
    return msgspec.Meta(description=text)


def extra(**schema: Any) -> msgspec.Meta:
    """Further keywords of the schema. An underscore stands for a hyphen: `x_kubernetes_map_type="atomic"`."""
    return msgspec.Meta(extra_json_schema={key.replace("_", "-"): value for key, value in schema.items()})


def rules(*pairs: tuple[str, str]) -> msgspec.Meta:
    """CEL rules, each with its message."""
    return extra(x_kubernetes_validations=[{"rule": rule, "message": message} for rule, message in pairs])
