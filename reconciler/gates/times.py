"""The times of a ReleaseWindow as its status has them. Pure functions."""

from collections.abc import Sequence

import msgspec

from altershield.api.gates.windows import MAX_INTERVALS, Interval, ReleaseWindowStatus
from kube_base.times import rfc3339, unix
from reconciler.gates.terms import DAY, Span

REACH = 35 * DAY
"""How far the times reach, in seconds."""

LEAST_REACH = 7 * DAY
"""How far they have to reach for a spec to be accepted."""

_LEAST_LEFT = 28 * DAY  # less is left: they are worked out anew
_LEAST_INTERVALS = MAX_INTERVALS * 3 // 4  # of the times that reach less far, because there are so many


class Times(msgspec.Struct, frozen=True):
    """Times that follow from schedules. All that begin before `until` (Unix seconds) are there."""

    spans: tuple[Span, ...]
    until: int


def bounded(spans: Sequence[Span], end: int) -> Times:
    """The first times of these, which are all that begin before `end`."""
    if len(spans) <= MAX_INTERVALS:
        return Times(tuple(spans), end)
    return Times(tuple(spans[:MAX_INTERVALS]), spans[MAX_INTERVALS][0])


def of(status: ReleaseWindowStatus) -> Times:
    """The times that a status has."""
    spans = tuple((int(unix(each.from_)), int(unix(each.to))) for each in status.intervals)
    return Times(spans, int(unix(status.computed_until)))


def intervals(times: Times) -> tuple[Interval, ...]:
    """The times as a status has them."""
    return tuple(Interval(rfc3339(start), rfc3339(stop)) for start, stop in times.spans)


def due(times: Times) -> int:
    """The Unix second from which on the times are to be worked out anew."""
    if len(times.spans) < MAX_INTERVALS:
        return times.until - _LEAST_LEFT
    return max(times.until - _LEAST_LEFT, times.spans[-_LEAST_INTERVALS][0])


def agree(known: Times, new: Times, now: int) -> bool:
    """Whether both say the same about every second from `now` to the end of the times that reach less far."""
    until = min(known.until, new.until)
    return until <= now or _clipped(known, now, until) == _clipped(new, now, until)


def _clipped(times: Times, begin: int, end: int) -> list[Span]:
    return [(max(start, begin), min(stop, end)) for start, stop in times.spans if start < end and begin < stop]
