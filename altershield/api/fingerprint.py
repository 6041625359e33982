"""The version of a workload: a fingerprint of its pod template.

The canonical form of a template is JSON in UTF-8 without white space, `{"metadata": …, "spec": …}`, the members
of every object sorted by code point, numbers as orjson writes them, without
- the version label itself, which would otherwise change what it names, and the labels that do not belong into
  templates, which the gatekeeper takes out;
- null members of `metadata` (older API servers write `creationTimestamp: null`, newer ones nothing);
- `labels` and `annotations` that are empty: to Kubernetes that is the same as absent. `metadata` that is then
  empty and `spec` that is absent are null.

Nothing else is left out: elsewhere an empty object may differ from none (a `namespaceSelector: {}` selects
every namespace).
"""

import hashlib
from typing import Any

import msgspec
import orjson

from altershield.api import labels

_DIGITS = 32


_Metadata = dict[str, str | bool | int | float | list[Any] | dict[str, str] | None]
"""In an ObjectMeta the objects are maps of strings: labels and annotations."""


class Template(msgspec.Struct, frozen=True):
    """A pod template. Of its metadata all is kept, `spec` stays JSON (empty where there is none)."""

    metadata: _Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")


def fingerprint(canonical_form: bytes) -> str:
    """32 hex digits: the first half of the SHA-256."""
    return hashlib.sha256(canonical_form).hexdigest()[:_DIGITS]


def canonical(template: Template) -> bytes:
    """The canonical form; orjson's errors for what is no JSON, or is nested more than 250 levels deep."""
    return encode(form(template))


def form(template: Template) -> dict[str, Any]:
    """The canonical form as an object; orjson.JSONDecodeError for what is no JSON."""
    spec = orjson.loads(memoryview(template.spec)) if template.spec else None
    return {"metadata": _metadata(template.metadata) if template.metadata else None, "spec": spec}


def encode(form: dict[str, Any]) -> bytes:
    """The canonical form's bytes; orjson.JSONEncodeError for what is nested too deeply."""
    return orjson.dumps(form, option=orjson.OPT_SORT_KEYS)


def _metadata(metadata: _Metadata) -> _Metadata | None:
    kept: _Metadata = {}
    for key, value in metadata.items():
        if key == "labels" and isinstance(value, dict):
            value = value.copy()
            value.pop(labels.VERSION, None)
            for label in labels.NOT_IN_TEMPLATES:
                value.pop(label, None)
        if value or (value is not None and key not in ("labels", "annotations")):
            kept[key] = value
    return kept or None
