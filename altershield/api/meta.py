"""Conditions as Kubernetes defines them, and times as our kinds have them."""

import datetime
from collections.abc import Sequence
from typing import Annotated

import msgspec

from kube_base.times import rfc3339, unix


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


def time_of(text: str, default: float) -> float:
    """Like `unix`, but `default` if the text is empty or no time."""
    return unix(text) or default


def plain_time(now: float) -> str:
    """Unix seconds in the format of our kinds: `2026-08-21 07:29:49`, UTC."""
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
