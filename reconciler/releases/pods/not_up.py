"""The pods of one release that are not up. For some of them, the reason is known. For others, Events may give it.
Without I/O.

The Events of a pod are read at most twice a minute, and of at most a few pods of a release, since the others have the
same template. They are read again after the pod has changed, or after the start timeout.
"""

import heapq
from collections.abc import Collection

from altershield.workloads.pods import Trouble
from reconciler.releases.pods.group import Group
from reconciler.releases.pods.health import Timing, TrackedPod
from reconciler.releases.pods.words import own_words, told_by

ASK_AFTER = 30
"""Seconds after which the Events of a pod are read if its status does not say why it is not up, and at least between
two reads for one release. Most pods are up earlier."""

_ASKED = 2  # pods whose Events are read at a time

_GROUPS = (Group.DOWN, Group.OVERDUE, Group.FAULT)


class NotUpPods:
    """The pods that are not up, without those that have no node yet."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._telling: dict[str, TrackedPod] = {}
        self._silent: dict[str, TrackedPod] = {}
        self._due: list[tuple[float, str]] = []
        self._asked_at = 0.0

    @property
    def telling(self) -> Collection[TrackedPod]:
        """The pods for which something says why they are not up."""
        return self._telling.values()

    @property
    def first(self) -> TrackedPod | None:
        """Of these pods, the one that is down for the longest time."""
        return min(self.telling, key=lambda tracked: (tracked.down_since, tracked.pod.metadata.name), default=None)

    def update(self, tracked: TrackedPod, group: Group, *, node_lost: bool) -> None:
        """Take over a new or changed pod of the release."""
        uid = tracked.pod.metadata.uid
        self.remove(uid)
        if group not in _GROUPS or tracked.pod.unscheduled:
            return
        if told_by(tracked, node_lost=node_lost) is not None:
            self._telling[uid] = tracked
        if group is not Group.FAULT and own_words(tracked, node_lost=node_lost) is None:
            self._silent[uid] = tracked
            heapq.heappush(self._due, (self._ask_at(tracked), uid))

    def remove(self, uid: str) -> None:
        """Forget a pod that was deleted or is up."""
        self._telling.pop(uid, None)
        self._silent.pop(uid, None)

    def next_ask(self) -> float | None:
        """The next time to read the Events of a pod, Unix seconds; None if there is no such pod."""
        while self._due:
            due, uid = self._due[0]
            tracked = self._silent.get(uid)
            if tracked is not None and self._ask_at(tracked) == due:
                return max(due, self._asked_at + ASK_AFTER)
            heapq.heappop(self._due)
        return None

    def ask(self, now: float) -> list[TrackedPod]:
        """The pods whose Events are to be read at `now` (Unix seconds). They and all others that are due count as
        read."""
        found = []
        while (due := self.next_ask()) is not None and due <= now:
            _, uid = heapq.heappop(self._due)
            tracked = self._silent[uid]
            found.append(tracked)
            tracked.asked_at, tracked.changed = now, False
            heapq.heappush(self._due, (self._ask_at(tracked), uid))
        if found:
            self._asked_at = now
        found.sort(key=lambda tracked: (tracked.down_since, tracked.pod.metadata.name))
        return found[:_ASKED]

    def _ask_at(self, tracked: TrackedPod) -> float:
        if tracked.changed:
            return max(tracked.down_since, tracked.asked_at) + ASK_AFTER
        return tracked.asked_at + max(self._timing.start_timeout, ASK_AFTER)


def set_event(tracked: TrackedPod, found: Trouble | None, now: float) -> None:
    """Set what the Events of the pod say, as read at `now` (Unix seconds); None: nothing."""
    tracked.event, tracked.asked_at, tracked.changed = found, now, False
