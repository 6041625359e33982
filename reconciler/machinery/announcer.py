"""Writes the Events that a status stores as announcements.

An announcement is stored in the status together with the change that it describes. It stays until the Event is written
and the status changes again. After a crash, this or another leader writes a missing Event. The name of the Event is
derived from the announcement, so no Event is written twice.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from altershield.api.announcements import Announcement, added, is_late
from kube_base.access.events import NORMAL, RETRY, WARNING, EventRecorder, ObjectRef
from kube_base.times import unix


class Announcer:
    """`clock` returns Unix seconds."""

    def __init__(self, recorder: EventRecorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._clock = clock

    def write(self, regarding: ObjectRef, uid: str, announcements: Iterable[Announcement]) -> float | None:
        """Write the Events that are missing, in the background. `regarding`: what they are about. `uid`: of the object
        whose status has the announcements.

        Returns the seconds after which this is to be called again, because an Event may not be written; else None.
        """
        left = [each for each in announcements if not self._is_over(uid, each)]
        for each in left:
            self._recorder.announce(
                regarding,
                NORMAL if each.normal else WARNING,
                each.reason,
                each.message,
                identity=_identity_of(uid, each),
                at=unix(each.time),
            )
        return RETRY if left else None

    def with_new(
        self, uid: str, stored: Sequence[Announcement], new: Sequence[Announcement]
    ) -> tuple[Announcement, ...]:
        """The announcements of a status that is written now: the stored ones that are needed, and the new ones."""
        return added(self.left(uid, stored), new)

    def left(self, uid: str, stored: Sequence[Announcement]) -> tuple[Announcement, ...]:
        """The announcements whose Events may be missing. The others are not needed any more."""
        return tuple(each for each in stored if not self._is_over(uid, each))

    def _is_over(self, uid: str, announcement: Announcement) -> bool:
        return is_late(announcement, self._clock()) or self._recorder.is_announced(_identity_of(uid, announcement))


def identity(*parts: str) -> str:
    """The identity of an Event that follows from these texts."""
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()[:16]


def _identity_of(uid: str, announcement: Announcement) -> str:
    return identity(uid, announcement.time, announcement.reason, announcement.message)
