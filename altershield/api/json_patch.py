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


def without_label(key: str) -> tuple[Operation, Operation]:
    """The operations that remove a label whether or not the object has it: the API server refuses to remove one that
    does not exist, and a cache does not know what was added since."""
    path = label_path(key)
    return {"op": "add", "path": path, "value": ""}, {"op": "remove", "path": path}


def at_version(resource_version: str) -> Operation:
    """The operation that refuses the patch if the object has changed since it had this resourceVersion."""
    return {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version}
