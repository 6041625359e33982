"""The version that a changed template gets."""

import orjson

from altershield.api.fingerprint import Template, canonical, fingerprint, metadata
from gatekeeper.errors import ReviewError


def release(new: Template, old: Template | None) -> str:
    """The fingerprint of `new` if it differs from `old`, else an empty string. ReviewError: a template has no canonical
    form."""
    # The API server writes both objects of a review, so equal specs have equal bytes.
    if old is not None and new.spec == old.spec and metadata(new) == metadata(old):
        return ""
    try:
        return fingerprint(canonical(new))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:  # encoding fails for deep nesting
        raise ReviewError(f"the pod template in the request cannot be read: {error}") from error
