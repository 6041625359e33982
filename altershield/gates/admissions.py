"""The releases that this process admitted a short time ago, for ReleaseLimits.

The reconciler counts releases after they have begun. Until its count arrives, a gatekeeper would admit further releases
by an old count. So it adds its own admissions. It does not know those of other gatekeepers.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from altershield.api.gates.named_workload import NamedWorkload
from altershield.gates.cached import Stored
from altershield.gates.gate import G, Gate
from altershield.gates.limits import COUNTED_AS, LIMITS, Limit
from altershield.gates.release import Admitted, Release

KEPT_SECONDS = 120.0
"""How long an admission is kept that no status counts: the API server may have refused the request after it was
admitted, or no reconciler runs."""

MAX_KEPT = 1000
"""The maximum number of admissions that are kept."""


class Admissions(Protocol):
    """The releases that this process admitted a short time ago."""

    def recent(self, now: float) -> tuple[Admitted, ...]:
        """Those that the status of a limit may not count yet. `now`: Unix seconds."""

    def add(self, release: Release, now: float) -> None:
        """The release was admitted."""


class Judging(Protocol):
    """Finds the objects that judge a release."""

    def judging(self, gate: Gate[Any, G], release: Release) -> Iterator[G]: ...


class Changing(Protocol):
    """The cache of ReleaseLimits."""

    def add_handler(self, handler: Callable[[Stored | None, Stored | None], None]) -> None: ...


class RecentAdmissions:
    """`gates`: the limits that are in force. `cache`: that of ReleaseLimits."""

    def __init__(self, gates: Judging, cache: Changing) -> None:
        self._gates = gates
        cache.add_handler(lambda _, new: self.observe(new))
        self._kept: OrderedDict[tuple[NamedWorkload, str], Admitted] = OrderedDict()
        """The oldest first."""

    def recent(self, now: float) -> tuple[Admitted, ...]:
        while self._kept and next(iter(self._kept.values())).time <= now - KEPT_SECONDS:
            self._kept.popitem(last=False)
        return tuple(self._kept.values())

    def add(self, release: Release, now: float) -> None:
        changes = (replace(release, judged=each) for each in COUNTED_AS[release.judged])
        limits = frozenset(limit.place for each in changes for limit in self._gates.judging(LIMITS, each))
        if not limits:
            return
        key = release.workload, release.version
        self._kept.pop(key, None)
        self._kept[key] = Admitted(*key, now, limits)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def observe(self, stored: Stored | None) -> None:
        """A ReleaseLimit has changed: forget the admissions that its status counts now."""
        limit = stored.in_force if stored is not None else None
        if not isinstance(limit, Limit):
            return
        for key, each in list(self._kept.items()):
            if limit.place in each.limits and limit.counts(each):
                left = each.limits - {limit.place}
                if left:
                    self._kept[key] = replace(each, limits=left)
                else:
                    del self._kept[key]
