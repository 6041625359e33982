"""Which version a change releases."""

import orjson

from altershield.api.fingerprint import Template, encode, fingerprint, form
from gatekeeper.errors import ReviewError


def release(new: Template, old: Template | None) -> str:
    """The version that `new` releases: its fingerprint if it differs from `old`, else empty. ReviewError where
    a template has no canonical form."""
    if new == old:  # the API server writes equal templates equally, mostly
        return ""
    try:
        wanted = form(new)
        encoded = encode(wanted)
        if old is not None:
            before = form(old)
            # Python takes 1, 1.0 and true for equal, their JSON is not; but what is unequal to Python is so in JSON
            if before == wanted and encode(before) == encoded:
                return ""
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:  # the latter: depth
        raise ReviewError(f"a pod template in the request cannot be read: {error}") from error
    return fingerprint(encoded)
