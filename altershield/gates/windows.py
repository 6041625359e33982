"""ReleaseWindows: the times in which releases may begin, or may not."""

import bisect
import datetime
import operator
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec, WindowType
from altershield.api.resources import RELEASE_WINDOWS
from altershield.gates.gate import Gate
from altershield.gates.release import Closed, Release, selects_all, selects_any, unchanged_until
from kube_base.times import rfc3339, unix

_from = operator.itemgetter(0)
_NOT_ACCEPTED = "no spec of it was accepted yet"


@dataclass(frozen=True, slots=True)
class Window:
    """A ReleaseWindow with the spec and the times that are in force."""

    namespace: str
    name: str
    rules: ReleaseWindowSpec
    intervals: tuple[tuple[float, float], ...]
    """The times of the schedules, Unix seconds, in their order. They do not overlap."""
    computed_until: float
    """How far they reach, Unix seconds; 0: they are not known yet."""
    zone: datetime.tzinfo = datetime.UTC
    """The time zone of the schedules."""

    @property
    def allows(self) -> bool:
        return self.rules.type is WindowType.ALLOW

    def interval_at(self, now: float) -> tuple[float, float] | None:
        """The time of the schedules that `now` is in."""
        number = bisect.bisect_right(self.intervals, now, key=_from)
        found = self.intervals[number - 1] if number else None
        return found if found is not None and now < found[1] else None

    def is_open(self, now: float) -> bool:
        """Whether releases may begin. Unknown times are no open ones."""
        found = self.interval_at(now)
        if not self.allows:
            return found is None
        return found is not None and found[1] - now > self.rules.min_remaining_seconds and now < self.computed_until

    def opens_at(self, now: float) -> float:
        """When it opens after `now`, at which it is closed; 0: not as far as its times reach."""
        if not self.allows:
            found = self.interval_at(now)
            return found[1] if found is not None else 0.0
        lasting = (each for each in self.intervals if each[1] - each[0] > self.rules.min_remaining_seconds)
        return next((from_ for from_, _ in lasting if from_ > now), 0.0)

    def closes_at(self, now: float) -> float:
        """When it closes after `now`, at which it is open; 0: not as far as its times reach."""
        if self.allows:
            found = self.interval_at(now)
            return min(found[1] - self.rules.min_remaining_seconds, self.computed_until) if found is not None else 0.0
        number = bisect.bisect_right(self.intervals, now, key=_from)
        return self.intervals[number][0] if number < len(self.intervals) else 0.0

    def closed_since(self, now: float) -> float:
        """Since when it is closed; 0: it is not known."""
        if not self.allows:
            found = self.interval_at(now)
            return found[0] if found is not None else 0.0
        return max((to for _, to in self.intervals if to <= now), default=0.0)


def in_force(window: ReleaseWindow) -> Window | None:
    """The window in force; None if none is: one that never was accepted denies nothing, and allows nothing."""
    metadata, status = window.metadata, window.status
    if metadata.deletion_timestamp is not None:
        return None
    if status.accepted is None and window.spec.type is WindowType.DENY:
        return None
    intervals = tuple((unix(each.from_), unix(each.to)) for each in status.intervals)
    until = unix(status.computed_until)
    spec = status.accepted or window.spec
    return Window(metadata.namespace, metadata.name, spec, intervals, until, _zone(spec.time_zone))


def _zone(name: str) -> datetime.tzinfo:
    """The time zone, for texts; UTC if this process does not know it."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return datetime.UTC


def closed(windows: Iterable[Window], release: Release, now: float) -> Iterator[Closed]:
    """The windows of one namespace that are closed for the release.

    Each `Deny` that selects the workload has to be open, and one of those `Allow` that select it, if there are any. An
    `Allow` with mode `warn` opens nothing for those that are enforced.
    """
    allows: list[Window] = []
    for window in windows:
        if window.allows:
            if selects_all(window, release):
                allows.append(window)
        elif not window.is_open(now) and selects_any(window, release):
            yield _closed(window, now)
    for among in ([each for each in allows if each.rules.mode == "enforce"], allows):
        if among and not any(each.is_open(now) for each in among):
            yield _closed(min(among, key=lambda each: (each.opens_at(now) or float("inf"), each.name)), now)
            return


def _closed(window: Window, now: float) -> Closed:
    since, opens_at = window.closed_since(now), window.opens_at(now)
    what = "no release may begin in these times" if not window.allows else "releases may begin in its times only"
    if window.allows and not window.computed_until:
        what += f", and {_NOT_ACCEPTED}"
    elif window.allows and now >= window.computed_until:
        what += f", which are known until {rfc3339(window.computed_until)}: no reconciler has written further ones"
    return Closed(
        kind=RELEASE_WINDOWS.kind,
        namespace=window.namespace,
        name=window.name,
        rules=window.rules,
        reason=window.rules.reason,
        what=what,
        since=rfc3339(since) if since else "",
        opens_at=rfc3339(opens_at) if opens_at else "",
        zone=window.zone,
    )


def _may_be_closed(windows: Sequence[Window], now: float) -> tuple[Sequence[Window], float]:
    """An open `Allow` matters only beside one that is closed."""
    allows = any(each.allows and not each.is_open(now) for each in windows)
    found = [each for each in windows if not each.is_open(now) or (each.allows and allows)]
    return found, unchanged_until(windows, now)


WINDOWS = Gate(RELEASE_WINDOWS, ReleaseWindow, in_force, closed, _may_be_closed)
