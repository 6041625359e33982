"""Announcements in a status: Events that are stored before they are written, so that a crash in between loses none."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from altershield.api.fields import Name, Text
from altershield.api.schema import doc
from kube_base.times import rfc3339, unix

_MAX_MESSAGE = 1024  # characters, as `Text`

MAX_ANNOUNCEMENTS = 16
"""The maximum number of `announcements` in a status."""


MAX_LATE = 1800.0
"""Seconds after which an Event is not written any more. API servers delete Events after an hour by default, and a
deleted Event must not come back."""


class Announcement(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An Event about the object, which AlterShield writes after this status is stored."""

    reason: Annotated[Name, doc("The reason of the Event.")]
    message: Annotated[Text, doc("Its message.")] = ""
    time: Annotated[Name, doc("When it was decided, UTC.")] = ""
    normal: Annotated[bool, doc("Whether its type is `Normal`, not `Warning`.")] = False


Announcements = Annotated[
    tuple[Announcement, ...],
    msgspec.Meta(
        max_length=MAX_ANNOUNCEMENTS,
        description="Events that AlterShield writes. The next change of the status removes those that are written.",
    ),
]


def announcement(reason: str, message: str, now: float, *, normal: bool = False) -> Announcement:
    """An announcement of `now`, Unix seconds. A message that is too long is cut."""
    text = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"
    return Announcement(reason, text, rfc3339(now), normal)


def is_late(stored: Announcement, now: float) -> bool:
    """Whether the Event is not written any more at `now`, Unix seconds."""
    return abs(now - unix(stored.time)) > MAX_LATE


def added(stored: Sequence[Announcement], new: Sequence[Announcement]) -> tuple[Announcement, ...]:
    """The stored announcements and the new ones. If there are too many, the newest stay."""
    return (*stored, *new)[-MAX_ANNOUNCEMENTS:]
