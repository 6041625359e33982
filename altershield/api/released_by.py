"""The annotation of a workload with the user who released its version, and the time. Only AlterShield writes it."""

import types
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from kube_base.times import rfc3339

ANNOTATION = "altershield.defense.antgroup.com/released-by"

MAX_USER = 253
"""The maximum length of a user name in the annotation."""

MAX_MANAGER = 128
"""The maximum length of a field manager in it."""


class ReleasedBy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of the annotation, as JSON."""

    user: str
    """The user name that the API server authenticated, cut to 253 characters."""
    time: str
    """In the format of Kubernetes, by the clock of the gatekeeper: `2026-08-21T07:29:49Z`."""
    version: str
    """The version that was released. After a release without a gatekeeper, it is an earlier version."""
    manager: str = ""
    """The field manager that the client named, cut to 128 characters; empty: it named none."""
    labels: dict[str, str] = {}
    """The labels of the workload then, without AlterShield's own, if there were gates: nobody evades a gate by a change
    of labels before the next release."""


def encode(
    user: str, version: str, now: float, manager: str = "", labels: Mapping[str, str] = types.MappingProxyType({})
) -> str:
    """The value for a release at `now` (Unix seconds)."""
    found = ReleasedBy(user[:MAX_USER], _time(int(now)), version, manager[:MAX_MANAGER], dict(labels))
    return _encode(found).decode()


def decode(value: str | None, version: str) -> ReleasedBy | None:
    """The release of this version. None: the annotation is missing or invalid, or belongs to another version."""
    found = read(value)
    return found if found is not None and found.version == version else None


def read(value: str | None) -> ReleasedBy | None:
    """The last release that a gatekeeper reviewed. None: the annotation is missing or invalid."""
    if not value:
        return None
    try:
        return msgspec.json.decode(value, type=ReleasedBy)
    except (ValueError, RecursionError):
        return None


_encode = msgspec.json.Encoder().encode
_time = lru_cache(maxsize=16)(rfc3339)  # each review of a second needs the same text
