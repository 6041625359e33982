"""Metadata and conditions: the parts of Kubernetes' own types that our kinds and views share."""

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


class ObjectMeta(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The metadata that is read here; everything else is dropped while decoding."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One aspect of an object's state, as in metav1.Condition, whose bounds these are."""

    type: Annotated[str, msgspec.Meta(max_length=316, description="Which aspect.")]
    status: Annotated[str, msgspec.Meta(max_length=7, description="`True`, `False` or `Unknown`.")]
    reason: Annotated[str, msgspec.Meta(max_length=1024, description="Why, in one word.")]
    message: Annotated[str, msgspec.Meta(max_length=32768, description="Why, in words that people will read.")] = ""
    last_transition_time: Annotated[str, msgspec.Meta(max_length=64, description="Since when the status is this.")] = ""
    observed_generation: Annotated[int, msgspec.Meta(description="The generation that this is about.")] = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def find_condition(conditions: Sequence[Condition], type_: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def has_reason(conditions: Sequence[Condition], type_: str, reason: str) -> bool:
    """Whether the condition is there, with this reason."""
    found = find_condition(conditions, type_)
    return found is not None and found.reason == reason


def set_condition(conditions: Sequence[Condition], new: Condition, now: float) -> tuple[Condition, ...]:
    """`conditions` with `new` in its place; the transition time moves only when the status does."""
    old = find_condition(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else rfc3339(now)
    kept = tuple(c for c in conditions if c.type != new.type)
    return (*kept, msgspec.structs.replace(new, last_transition_time=since))


def rfc3339(now: float) -> str:
    """Unix seconds as Kubernetes writes times: `2026-08-21T07:29:49Z`."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(text: str | None) -> float:
    """The Unix seconds of a time as Kubernetes writes it; 0 for none."""
    return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0


def plain_time(now: float) -> str:
    """Unix seconds as our kinds show times: `2026-08-21 07:29:49`, UTC."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
