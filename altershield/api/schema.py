"""Annotations of the field types of our kinds, from which the schemas of the CRDs are generated.

Patterns and rules are for the API server. They do not restrict decoding, so that an object of an older schema can still
be read.

Most types have `gc=False`: there are many of these objects, and none can be part of a reference cycle. `omit_defaults`
omits values that equal a plain default. Values of a default factory are always written.
"""

from typing import Any

import msgspec


def doc(text: str) -> msgspec.Meta:
    """The description of a field in `kubectl explain` and in the reference."""
    return msgspec.Meta(description=text)


def extra(**schema: Any) -> msgspec.Meta:
    """Further keywords of the schema. An underscore stands for a hyphen: `x_kubernetes_map_type="atomic"`."""
    return msgspec.Meta(extra_json_schema={key.replace("_", "-"): value for key, value in schema.items()})


def pattern(expression: str) -> msgspec.Meta:
    """The regular expression that a text has to match."""
    return extra(pattern=expression)


def rules(*pairs: tuple[str, str]) -> msgspec.Meta:
    """CEL rules, each with its message."""
    return extra(x_kubernetes_validations=[{"rule": rule, "message": message} for rule, message in pairs])
