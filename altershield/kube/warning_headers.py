"""The texts in the Warning headers of responses. API servers warn with them, also in the name of webhooks."""

import re
from collections.abc import Iterable

_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def texts(values: Iterable[str]) -> list[str]:
    """The texts of these headers. Headers that are not warnings of an API server are left out."""
    return [_ESCAPED.sub(r"\1", found) for value in values for found in _WARNING.findall(value)]
