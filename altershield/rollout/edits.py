"""What a client-side apply says about the held fields of a workload. Pure functions.

While a release is held, a user may set a field to the value that it has at that moment. `kubectl apply` then changes
nothing in the spec, and stores the manifest in its annotation: only there the value is new. A server-side apply of such
a value changes nothing at all, and the API server does not store it.
"""

from typing import Any

import msgspec

from altershield.workloads.held import Holder, values


def newly_applied(holder: Holder, old: str | None, new: str | None) -> dict[str, Any]:
    """The held fields, by path, that the manifest `new` has and `old` has not, or with another value. `old`, `new`: the
    manifests that `kubectl apply` stored before and now, as JSON; None: none."""
    if new is None or new == old:
        return {}
    before, now = _values(holder, old), _values(holder, new)
    return {path: value for path, value in now.items() if value is not None and value != before.get(path)}


def _values(holder: Holder, manifest: str | None) -> dict[str, Any]:
    """The held fields of a manifest. Anybody may have written the annotation: it may have any form."""
    try:
        found = msgspec.json.decode(manifest) if manifest is not None else None
    except (ValueError, RecursionError):
        return {}
    spec = found.get("spec") if isinstance(found, dict) else None
    return values(holder, spec) if isinstance(spec, dict) else {}
