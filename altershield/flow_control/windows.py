"""Sliding windows: how many deletions were counted in the interval before a time.

A window consists of buckets. The length of a bucket is a sixtieth of the interval, but at least one second. A bucket
counts while any part of it is in the interval. So a deletion counts for the interval, and for at most one bucket more.
"""

from collections.abc import Iterable, Mapping, Sequence

from altershield.api import durations
from altershield.api.flow_control import Window
from altershield.api.meta import time_of
from altershield.flow_control.rules import Rule
from kube_base.times import rfc3339

CLOCK_ERROR = 2
"""Seconds by which the clocks of two writers may differ. Deletions count for this time longer than the interval."""

_BUCKETS = 60


def bucket_seconds(interval: int) -> int:
    """The length of a bucket. `interval`: seconds."""
    return max(1, -(-interval // _BUCKETS))


class Tally:
    """A mutable copy of the window of one rule at one time. `now`: Unix seconds."""

    def __init__(self, rule: Rule, stored: Window | None, carried: Window | None, now: int) -> None:
        """`stored`: the window of this interval, or None. `carried`: the window of the interval that the rule had
        before. If there is no `stored` one, its deletions are taken over: they count after a change of the rule too."""
        self.rule = rule
        self.size = bucket_seconds(rule.seconds)
        self._now = now
        since = time_of(stored.since, 0.0) if stored is not None else 0.0 if carried is None else now
        self.since = min(int(since), now)
        self._buckets: dict[int, int] = {}
        source, size = stored, self.size
        if source is None and carried is not None:
            source, size = carried, carried.bucket_seconds
        for start, count in _read(source) if source is not None else ():
            # the last second in which a deletion of the bucket may have been counted
            self._put(start if source is stored else start + size - 1, count)
        self.used = sum(self._buckets.values())

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.used >= self.rule.limit

    def percent(self) -> int:
        """The used share of the limit, in percent."""
        return self.used * 100 // self.rule.limit if self.rule.limit else 100

    def counted_since(self, since: float) -> int:
        """The number of deletions that were counted after a time. The bucket of that time is left out, because it may
        have earlier deletions, too."""
        return sum(count for start, count in self._buckets.items() if start > since)

    def add(self) -> None:
        """Count a deletion now."""
        self._put(self._now, 1)
        self.used += 1

    def take_back(self, time: float) -> None:
        """Take back a deletion that was counted at this time. A window that began later may not have it."""
        start = self._start(self._corrected(int(time)))
        if self.since > time or self._buckets.get(start, 0) <= 0:
            return
        self._buckets[start] -= 1
        self.used -= 1
        if not self._buckets[start]:
            del self._buckets[start]

    def free_at(self) -> int | None:
        """The Unix second at which the next deletion passes, if no deletion is counted before; None if the limit is
        0."""
        left = self.used
        if left < self.rule.limit:
            return self._now
        for start, count in sorted(self._buckets.items()):
            left -= count
            if left < self.rule.limit:
                return start + self.size + self.rule.seconds + CLOCK_ERROR
        return None

    def window(self) -> Window:
        """The window as the status stores it."""
        return Window(
            interval=self.rule.interval,
            limit=self.rule.limit,
            used=self.used,
            bucket_seconds=self.size,
            buckets={str(start): count for start, count in sorted(self._buckets.items())},
            since=rfc3339(self.since) if self.since else "",
        )

    def _corrected(self, second: int) -> int:
        """The time, or now if it is later than now by more than CLOCK_ERROR: a wrong clock wrote it, and the deletion
        would count for too long."""
        return second if second <= self._now + CLOCK_ERROR else self._now

    def _start(self, second: int) -> int:
        return second // self.size * self.size

    def _put(self, second: int, count: int) -> None:
        start = self._start(self._corrected(second))
        if start + self.size > self._now - self.rule.seconds - CLOCK_ERROR and count > 0:
            self._buckets[start] = self._buckets.get(start, 0) + count


def tallies(rules: Sequence[Rule], stored: Sequence[Window], now: int) -> tuple[Tally, ...]:
    """The windows of the rules. A rule whose limit was changed keeps its window."""
    known = {_seconds(window): window for window in stored}
    known.pop(0, None)
    return tuple(Tally(rule, known.get(rule.seconds), _nearest(rule, known), now) for rule in rules)


def _nearest(rule: Rule, known: Mapping[int, Window]) -> Window | None:
    """The window that has most of the deletions of this interval: the shortest one that is not shorter than the
    interval, else the longest one."""
    longer = [seconds for seconds in known if seconds >= rule.seconds]
    return known[min(longer) if longer else max(known)] if known else None


def _seconds(window: Window) -> int:
    """The interval in seconds; 0 if it cannot be read, or if another version of AlterShield chose the length of the
    buckets."""
    try:
        interval = durations.seconds(window.interval)
    except ValueError:
        return 0
    return interval if window.bucket_seconds == bucket_seconds(interval) else 0


def _read(window: Window) -> Iterable[tuple[int, int]]:
    """The start and the count of each bucket whose start can be read."""
    for start, count in window.buckets.items():
        if start.isascii() and start.isdigit() and len(start) <= 12:
            yield int(start), count
