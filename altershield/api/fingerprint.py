"""The version of a workload: a fingerprint of its pod template.

The canonical form of a template is the JSON `{"metadata": …, "spec": …}` in UTF-8, without white space, with the
members of every object sorted by code point, and with numbers as orjson writes them. It does not contain:
- the version label, which holds the fingerprint itself, and the labels that the gatekeeper removes from templates;
- null members of `metadata` (older API servers write `creationTimestamp: null`, newer ones omit it);
- empty `labels` and `annotations`: Kubernetes treats them as absent. If `metadata` is empty then, it is null. A missing
  `spec` is null.

Everything else stays: elsewhere, an empty object can differ from a missing one (`namespaceSelector: {}` selects all
namespaces).
"""

import hashlib
from typing import Any

import msgspec
import orjson

from altershield.api import labels

_DIGITS = 32
_SHA256 = hashlib.sha256()  # copied, because OpenSSL looks up the algorithm for each new one

_Metadata = dict[str, str | bool | int | float | list[Any] | dict[str, str] | None]
"""Values of a pod template's metadata. The only JSON objects in it are maps of strings: labels and annotations."""


class Template(msgspec.Struct, frozen=True):
    """A pod template with all its metadata. `spec` is not decoded, and empty if there is none."""

    metadata: _Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")


def fingerprint(canonical_form: bytes) -> str:
    """32 hex digits: the first half of the SHA-256."""
    digest = _SHA256.copy()
    digest.update(canonical_form)
    return digest.hexdigest()[:_DIGITS]


def canonical(template: Template) -> bytes:
    """The canonical form. orjson's errors for invalid JSON, and for JSON with more than 250 levels."""
    spec = orjson.loads(memoryview(template.spec)) if template.spec else None
    return orjson.dumps({"metadata": metadata(template), "spec": spec}, option=orjson.OPT_SORT_KEYS)


def metadata(template: Template) -> _Metadata | None:
    """The metadata in the canonical form."""
    kept: _Metadata = {}
    for key, value in (template.metadata or kept).items():
        if key == "labels" and isinstance(value, dict):
            value = value.copy()
            value.pop(labels.VERSION, None)
            for label in labels.NOT_IN_TEMPLATES:
                value.pop(label, None)
        if value or (value is not None and key not in ("labels", "annotations")):
            kept[key] = value
    return kept or None
