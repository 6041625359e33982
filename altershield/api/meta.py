"""Metadata, conditions and times, as Kubernetes defines them."""

import datetime
from collections.abc import Sequence
from typing import Annotated

import msgspec


class OwnerReference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class PartialObjectMeta(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Metadata without annotations, which can be most of an object. Decoding drops all other fields."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, or None."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ObjectMeta(PartialObjectMeta, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The metadata of our own kinds and of objects that are read one at a time.

    `altershield.workloads.meta` has a smaller form for the hundreds of thousands of objects in caches.
    `gatekeeper.request` has one with bounds, for input of unknown callers.
    """

    annotations: dict[str, str] = {}


def version_number(version: str) -> int:
    """A resourceVersion as a number; 0 if it is not a number. The resourceVersions of one resource can be compared:
    Kubernetes guarantees it since 1.35."""
    return int(version) if len(version) <= 20 and version.isascii() and version.isdigit() else 0


class Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition with the bounds of metav1.Condition."""

    type: Annotated[str, msgspec.Meta(max_length=316, description="The type of the condition.")]
    status: Annotated[str, msgspec.Meta(max_length=7, description="`True`, `False` or `Unknown`.")]
    reason: Annotated[str, msgspec.Meta(max_length=1024, description="The reason, in one word.")]
    message: Annotated[str, msgspec.Meta(max_length=32768, description="The reason, as text.")] = ""
    last_transition_time: Annotated[str, msgspec.Meta(max_length=64, description="When the status changed last.")] = ""
    observed_generation: Annotated[
        int, msgspec.Meta(description="The generation of the spec that this condition describes.")
    ] = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def find_condition(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """The condition of this type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def has_reason(conditions: Sequence[Condition], type_: str, reason: str) -> bool:
    """Whether `conditions` has this type with this reason."""
    found = find_condition(conditions, type_)
    return found is not None and found.reason == reason


def set_condition(conditions: Sequence[Condition], new: Condition, now: float) -> tuple[Condition, ...]:
    """`conditions` with `new` in place of the condition of its type. `now`: Unix seconds. The transition time changes
    only if the status changes."""
    old = find_condition(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else rfc3339(now)
    kept = tuple(c for c in conditions if c.type != new.type)
    return (*kept, msgspec.structs.replace(new, last_transition_time=since))


def rfc3339(now: float) -> str:
    """Unix seconds in the format of Kubernetes: `2026-08-21T07:29:49Z`."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(text: str | None) -> float:
    """A time in the format of Kubernetes in Unix seconds; 0 for None, an empty text, or a text that is no time.

    The API server also stores the years 0 and 10000, which Python does not have. Users can write them into Events and
    `managedFields`.
    """
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def time_of(text: str, default: float) -> float:
    """Like `unix`, but `default` if the text is empty or no time."""
    return unix(text) or default


def plain_time(now: float) -> str:
    """Unix seconds in the format of our kinds: `2026-08-21 07:29:49`, UTC."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
