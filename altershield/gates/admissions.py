"""The releases that this process admitted a short time ago, for ReleaseLimits.

The reconciler counts releases after they have begun. Until its count arrives, a gatekeeper would admit further releases
by an old count. So it adds its own admissions. It does not know those of other gatekeepers.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from altershield.api.gates.limits import MAX_RELEASES
from altershield.api.gates.named_workload import NamedWorkload
from altershield.gates.cached import Stored
from altershield.gates.gate import G, Gate
from altershield.gates.limits import COUNTED_AS, LIMITS, Limit
from altershield.gates.release import Admitted, Place, Release

KEPT_SECONDS = 120.0
"""How long an admission is kept that no status counts: the API server may have refused the request after it was
admitted, or no reconciler runs."""

MAX_KEPT = MAX_RELEASES
"""The maximum number of admissions that are kept for a limit. No limit admits more."""

_Kept = dict[tuple[NamedWorkload, str], Admitted]


class Admissions(Protocol):
    """The releases that this process admitted a short time ago."""

    def recent(self, now: float) -> Mapping[Place, Collection[Admitted]]:
        """Those that the status may not count yet, by the limit that counts them. `now`: Unix seconds."""

    def add(self, release: Release, now: float, *, held: bool) -> None:
        """The release was admitted. `held`: without a pod, so limits that hold count it when it begins."""


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
        self._kept: dict[Place, _Kept] = {}
        """By limit, the oldest first."""

    def recent(self, now: float) -> Mapping[Place, Collection[Admitted]]:
        for place, kept in list(self._kept.items()):
            while kept and next(iter(kept.values())).time <= now - KEPT_SECONDS:
                del kept[next(iter(kept))]
            if not kept:
                del self._kept[place]
        return {place: kept.values() for place, kept in self._kept.items()}

    def add(self, release: Release, now: float, *, held: bool) -> None:
        changes = (replace(release, judged=each) for each in COUNTED_AS[release.judged])
        key = release.workload, release.version
        limits = {limit.place: limit for each in changes for limit in self._gates.judging(LIMITS, each)}
        for place in [each.place for each in limits.values() if not (held and each.holds)]:
            kept = self._kept.setdefault(place, {})
            kept.pop(key, None)
            kept[key] = Admitted(*key, now)
            if len(kept) > MAX_KEPT:
                del kept[next(iter(kept))]

    def observe(self, stored: Stored | None) -> None:
        """A ReleaseLimit has changed: forget the admissions that its status counts now."""
        limit = stored.in_force if stored is not None else None
        if isinstance(limit, Limit):
            kept = self._kept.get(limit.place, {})
            for key in [key for key, each in kept.items() if limit.counts(each)]:
                del kept[key]
