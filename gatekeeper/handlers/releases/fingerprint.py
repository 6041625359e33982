"""The version that a changed template gets."""

import orjson

from altershield.api.fingerprint import Template, encode, fingerprint, form
from gatekeeper.errors import ReviewError


def release(new: Template, old: Template | None) -> str:
    """The fingerprint of `new` if it differs from `old`, else an empty string. ReviewError: a template has no canonical
    form."""
    if new == old:  # usually, the API server writes equal templates with equal bytes
        return ""
    try:
        wanted = form(new)
        encoded = encode(wanted)
        if old is not None:
            before = form(old)
            # In Python, 1, 1.0 and True are equal, but their JSON is not. Unequal values have unequal JSON.
            if before == wanted and encode(before) == encoded:
                return ""
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:  # encoding fails for deep nesting
        raise ReviewError(f"a pod template in the request cannot be read: {error}") from error
    return fingerprint(encoded)
