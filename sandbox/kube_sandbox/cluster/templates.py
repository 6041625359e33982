"""Pod templates: comparison, and the hash that distinguishes the ReplicaSets of a Deployment."""

from typing import Any

import orjson

from kube_sandbox.cluster.kinds import Object

HASH_LABEL = "pod-template-hash"

NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names in Kubernetes. There are no vowels, so that the names do not form words."""

_MAX_NAME = 253


def with_label(template: Object, key: str, value: str) -> Object:
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), key: value}}}


def equal(one: Object, other: Object) -> bool:
    """Whether two templates make the same pods. The hash label is ignored, because only the ReplicaSet's template has
    it. Missing and empty values are equal, as in `apiequality.Semantic.DeepEqual`."""
    return bool(_comparable(one) == _comparable(other))


def pod_template_hash(template: Object, collisions: int | None) -> str:
    """A hash of up to ten letters and digits. Another `collisions` (status.collisionCount) gives another hash."""
    return safe_hash(orjson.dumps(template, option=orjson.OPT_SORT_KEYS) + str(collisions or "").encode())


def safe_hash(data: bytes) -> str:
    """A hash of up to ten letters and digits that are valid in names."""
    return "".join(NAME_CHARACTERS[ord(digit) % len(NAME_CHARACTERS)] for digit in str(_fnv32a(data)))


def replica_set_name(deployment: str, template_hash: str) -> str:
    return f"{deployment[: _MAX_NAME - 1 - len(template_hash)]}-{template_hash}"


def _comparable(template: Object) -> Any:
    plain = _pruned(template)
    metadata = plain.get("metadata", {})
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != HASH_LABEL}
    metadata = {key: value for key, value in {**metadata, "labels": labels}.items() if value}
    return {**plain, "metadata": metadata}


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        pruned = {key: _pruned(item) for key, item in value.items()}
        return {key: item for key, item in pruned.items() if item is not None and item != []}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


def _fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
