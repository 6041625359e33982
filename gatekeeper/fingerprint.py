"""The version of a workload: a fingerprint of its pod template.

The canonical form of a template is JSON in UTF-8 without white space, `{"metadata": …, "spec": …}`, the members
of every object sorted by code point, numbers as orjson writes them, without
- the version label itself, which would otherwise change what it names;
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
from gatekeeper.errors import ReviewError

_DIGITS = 32


_Metadata = dict[str, str | bool | int | float | list[Any] | dict[str, str] | None]
"""In an ObjectMeta the objects are maps of strings: labels and annotations."""


class Template(msgspec.Struct, frozen=True):
    """A pod template. Of its metadata all is kept, `spec` stays JSON (empty where there is none)."""

    metadata: _Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"")


def release(new: Template, old: Template | None) -> str:
    """The version that `new` releases: its fingerprint if it differs from `old`, else empty. ReviewError where
    a template has no canonical form."""
    if new == old:  # the API server writes equal templates equally, mostly
        return ""
    form = _form(new)
    encoded = _encode(form)
    if old is not None:
        before = _form(old)
        # Python takes 1, 1.0 and true for equal, their JSON is not; but what is unequal to Python is so in JSON
        if before == form and _encode(before) == encoded:
            return ""
    return fingerprint(encoded)


def fingerprint(canonical_form: bytes) -> str:
    """32 hex digits: the first half of the SHA-256."""
    return hashlib.sha256(canonical_form).hexdigest()[:_DIGITS]


def canonical(template: Template) -> bytes:
    """The canonical form; ReviewError for what is no JSON, or is nested more than 250 levels deep."""
    return _encode(_form(template))


def _form(template: Template) -> dict[str, Any]:
    try:
        spec = orjson.loads(memoryview(template.spec)) if template.spec else None
    except orjson.JSONDecodeError as error:
        raise _unreadable(str(error)) from error
    return {"metadata": _metadata(template.metadata) if template.metadata else None, "spec": spec}


def _encode(form: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(form, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # depth
        raise _unreadable(str(error)) from error


def _metadata(metadata: _Metadata) -> _Metadata | None:
    kept: _Metadata = {}
    for key, value in metadata.items():
        if key == "labels" and isinstance(value, dict):
            value = value.copy()
            value.pop(labels.VERSION, None)
        if value or (value is not None and key not in ("labels", "annotations")):
            kept[key] = value
    return kept or None


def _unreadable(why: str) -> ReviewError:
    return ReviewError(f"a pod template in the request cannot be read: {why}")
