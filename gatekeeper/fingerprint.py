"""The version of a workload: a fingerprint of its pod template.

The canonical form of a template is JSON in UTF-8 without white space, the members of every object sorted by
code point, numbers as orjson writes them, without
- the version label itself, which would otherwise change what it names;
- null members of `metadata` (older API servers write `creationTimestamp: null`, newer ones nothing);
- `labels`, `annotations` and `metadata` that are empty: to Kubernetes that is the same as absent.

Nothing else is left out: elsewhere an empty object may differ from none (a `namespaceSelector: {}` selects
every namespace).
"""

import hashlib
from typing import Any

import orjson

from altershield.api import labels

_DIGITS = 32


def canonical(template: bytes) -> bytes:
    """The canonical form of a pod template. ValueError for what is no JSON object, or no object where a
    template has one, or nested more than 254 levels deep."""
    parsed = orjson.loads(template)
    if not isinstance(parsed, dict):
        raise ValueError("a pod template is an object")  # noqa: TRY004  (a value of the wrong type, not a bug)
    metadata = parsed.get("metadata")
    if isinstance(metadata, dict):
        parsed["metadata"] = _metadata(metadata)
    if not parsed.get("metadata"):
        parsed.pop("metadata", None)
    try:
        return orjson.dumps(parsed, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # a TypeError; its only cause here is depth or a huge integer
        raise ValueError(f"the pod template cannot be written as JSON: {error}") from error


def fingerprint(canonical_template: bytes) -> str:
    """32 hex digits: the first half of the SHA-256 of a template's canonical form."""
    return hashlib.sha256(canonical_template).hexdigest()[:_DIGITS]


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in metadata.items() if value is not None}
    if isinstance(kept.get("labels"), dict):
        kept["labels"].pop(labels.VERSION, None)
    for key in ("labels", "annotations"):
        if kept.get(key) == {}:
            del kept[key]
    return kept
