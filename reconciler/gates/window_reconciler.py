"""Controller: works the schedules of each ReleaseWindow out into the times of its status, and reports there whether the
window is accepted.

A spec that is not accepted leaves the last accepted one in force, and so does a calendar: the times go on as they
were. The status is written only if what it says changes, or before its times run out.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec, ReleaseWindowStatus
from altershield.api.resources import RELEASE_WINDOWS
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.objects import key_of
from kube_base.times import unix
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import WINDOWS
from reconciler.cluster.writer import Writer
from reconciler.gates import calendar_files, times
from reconciler.gates.acceptance import InForce, announcements, problem, status_of, too_many
from reconciler.gates.expansion import StoppedError
from reconciler.gates.problems import Problem, Reason
from reconciler.gates.question import Request
from reconciler.gates.times import Times
from reconciler.machinery.announcer import Announcer

_AGAIN = 60.0
"""Seconds after which it is tried again to work out times, if the worker was stopped."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WorkedOut:
    """What this process has worked out. `problem`: why it could not; None: the status may have the times."""

    spec: ReleaseWindowSpec
    texts: dict[str, str]
    problem: Problem | None


class WindowReconciler:
    """Its keys are the namespace and name of a ReleaseWindow. `clock` returns Unix seconds. `expand` works out the
    times of a window of a namespace; StoppedError: try again later."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        clock: Callable[[], float],
        expand: Callable[[Request, str], Awaitable[Times | Problem]],
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock
        self._expand = expand
        self._worked_out: dict[Key, list[_WorkedOut]] = {}
        """By window: what was worked out last of its spec, and of the one in force."""
        self._stopped: set[Key] = set()
        """The windows whose times could not be worked out, because the worker was stopped."""

    async def reconcile(self, key: Key) -> float | None:
        """Update the status. Returns the seconds until the window opens or closes, or until its times are to be worked
        out anew."""
        window = self._caches[WINDOWS].get(*key)
        if window is None or window.metadata.deletion_timestamp is not None:
            self._worked_out.pop(key, None)
            self._stopped.discard(key)
            return None
        self._stopped.discard(key)
        status, uid, now = await self._status(window), window.metadata.uid, self._clock()
        if status != window.status:
            new = announcements(window.status.conditions, status.conditions, now)
            left = self._announcer.with_new(uid, status.announcements, new)
            window = await self._writer.save_status(
                self._caches[WINDOWS], window, msgspec.structs.replace(status, announcements=left)
            )
        retry = self._announcer.write(ObjectRef.of(RELEASE_WINDOWS, window.metadata), uid, window.status.announcements)
        again = _AGAIN if key in self._stopped else None
        return min((each for each in (retry, again, _next(window.status, now)) if each is not None), default=None)

    async def _status(self, window: ReleaseWindow) -> ReleaseWindowStatus:
        known = window.status
        found = problem(window, self._caches.system_namespace) or await self._work_out(window, window.spec)
        if isinstance(found, Times):
            return status_of(window, InForce(window.spec, window.metadata.generation, found), None, self._clock())
        if known.accepted is None:
            return status_of(window, None, found, self._clock())
        extended = await self._work_out(window, known.accepted) if known.accepted != window.spec else found
        kept = extended if isinstance(extended, Times) else times.of(known)
        return status_of(window, InForce(known.accepted, known.accepted_generation, kept), found, self._clock())

    async def _work_out(self, window: ReleaseWindow, spec: ReleaseWindowSpec) -> Times | Problem:
        """The times of a spec of the window: those of the status if they are still right, else new ones."""
        key, status, now = key_of(window.metadata), window.status, int(self._clock())
        texts = calendar_files.texts(self._caches, key[0], spec)
        if isinstance(texts, Problem):
            return texts
        is_in_force, known = spec == status.accepted, times.of(status)
        is_fresh = is_in_force and now < times.due(known)
        worked_out = self._worked_out.get(key, [])
        last = next((each for each in worked_out if (each.spec, each.texts) == (spec, texts)), None)
        if last is not None and last.problem is not None:
            return last.problem
        if last is not None and is_fresh:
            return known
        try:
            new = await self._expand(Request(spec, texts, now, now + times.REACH), key[0])
        except StoppedError as error:
            self._stopped.add(key)
            logger.warning("could not work out a ReleaseWindow", extra={"object": "/".join(key), "cause": str(error)})
            reason = Reason.CALENDAR_INVALID if texts else Reason.SCHEDULE_INVALID
            return (
                known
                if is_fresh
                else Problem(reason, f"the times could not be worked out, which is tried again: {error}")
            )
        if isinstance(new, Times) and not is_in_force:
            new = too_many(new, now) or new
        others = [each for each in worked_out if each.spec != spec and each.spec in (window.spec, status.accepted)]
        self._worked_out[key] = [*others, _WorkedOut(spec, texts, new if isinstance(new, Problem) else None)]
        return known if is_fresh and isinstance(new, Times) and times.agree(known, new, now) else new


def _next(status: ReleaseWindowStatus, now: float) -> float | None:
    """The seconds until the status has to change; None: not by itself."""
    if status.accepted is None:
        return None
    wakes = (unix(status.next_transition_time), times.due(times.of(status)))
    return min((each - now for each in wakes if each > now), default=None)
