"""Operations of JSON patches (RFC 6902)."""

from functools import lru_cache
from typing import Any

from jsonpointer import escape

Operation = dict[str, Any]
"""One operation of a JSON patch."""


@lru_cache(maxsize=64)
def label_path(key: str, labels: str = "/metadata/labels") -> str:
    """The JSON pointer (RFC 6901) of the label `key` in the map at `labels`. Results are cached, because all admission
    requests need the same few keys."""
    return f"{labels}/{escape(key)}"


def at_version(resource_version: str) -> Operation:
    """The operation that refuses the patch if the object has changed since it had this resourceVersion."""
    return {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version}
