"""ReleaseLimits: how many releases may begin in a period, how many may be under way, and how long a workload rests
after a release.

The fuse of a limit closes no gate by itself: it makes a ReleaseFreeze (`reconciler/limits/`).
"""

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from altershield.api.gates.limits import CountedRelease, ReleaseLimit, ReleaseLimitSpec
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import GateMode, Judged
from altershield.api.resources import RELEASE_LIMITS
from altershield.gates.gate import Gate
from altershield.gates.release import Admitted, Closed, Place, Release, selects_any
from kube_base.times import rfc3339, unix

_CHANGES = (Judged.UPDATE, Judged.RESTART)

COUNTED_AS = {Judged.CREATE: (Judged.CREATE,), Judged.UPDATE: _CHANGES, Judged.RESTART: _CHANGES}
"""A release counts for a limit that judges one of these changes. A ChangeWorkload does not say whether it is of an
update or of a restart."""

CLOCKS = 30.0
"""By how many seconds the clocks of gatekeepers and reconcilers may differ."""

ANY = Release("", {}, ())
"""A release of a workload of which nothing is known."""

_NAMED = 3  # releases that a text names


class Counted(NamedTuple):
    """A release that the status counts."""

    workload: NamedWorkload
    version: str
    time: float
    """When it began, Unix seconds."""


class Part(NamedTuple):
    """A part of a limit that is closed."""

    what: str
    since: float = 0.0
    """Unix seconds; 0: it is not known."""
    opens_at: float = 0.0
    """Unix seconds; 0: it is not known."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A ReleaseLimit, with what its status counts."""

    namespace: str
    name: str
    rules: ReleaseLimitSpec
    releases: tuple[Counted, ...] = ()
    """The releases that began, the oldest first."""
    under_way: tuple[Counted, ...] = ()
    _latest: Mapping[tuple[NamedWorkload, str], float] = field(init=False)
    """When each of them began last."""
    _times: Sequence[float] = field(init=False)
    """When the releases began, in their order."""
    _busy: Mapping[NamedWorkload, None] = field(init=False)
    """The workloads with a release under way, in their order."""

    def __post_init__(self) -> None:  # a gatekeeper judges many releases between two changes of the status
        found = sorted((*self.under_way, *self.releases), key=lambda each: each.time)
        object.__setattr__(self, "_latest", {(each.workload, each.version): each.time for each in found})
        object.__setattr__(self, "_times", sorted(each.time for each in self.releases))
        object.__setattr__(self, "_busy", dict.fromkeys(each.workload for each in self.under_way))

    @property
    def place(self) -> Place:
        return self.namespace, self.name

    @property
    def paces(self) -> bool:
        """Whether AlterShield lets the releases begin that it judges: gatekeepers do not know of each other's."""
        return self.holds and (self.rules.rate is not None or self.rules.concurrent is not None)

    @property
    def holds(self) -> bool:
        """Whether a release that it judges waits for it before its first pod."""
        return self.rules.holds and self.rules.mode is GateMode.ENFORCE

    def counts(self, admitted: Admitted) -> bool:
        """Whether the status counts a release that was admitted."""
        return self._latest.get((admitted.workload, admitted.version), -math.inf) >= admitted.time - CLOCKS

    def closed_parts(self, release: Release, now: float) -> Iterator[Part]:
        """The parts that are closed for a release."""
        unseen = [
            each
            for each in release.admitted.get(self.place, ())
            if (each.workload, each.version) != (release.workload, release.version) and not self.counts(each)
        ]
        rate = self._rate(unseen, now)
        if rate is not None:
            yield rate
        concurrent = self._concurrent(unseen, release.workload)
        if concurrent is not None:
            yield concurrent
        quiet = self.rules.quiet_seconds
        if quiet is not None and release.succeeded and now < release.succeeded + quiet:
            what = f"the last release of the workload succeeded less than {quiet} seconds ago"
            yield Part(what, release.succeeded, release.succeeded + quiet)

    def _rate(self, unseen: Iterable[Admitted], now: float) -> Part | None:
        rate = self.rules.rate
        if rate is None:
            return None
        begin = now - rate.period_seconds
        begun = len(self._times) - bisect.bisect_right(self._times, begin)
        own = [each.time for each in unseen if each.time > begin]
        if begun + len(own) < rate.releases:
            return None
        counted = sorted((*self._times[len(self._times) - begun :], *own))
        what = f"{_releases(len(counted))} began within {rate.period_seconds} seconds (at most {rate.releases})"
        return Part(what, counted[rate.releases - 1], counted[-rate.releases] + rate.period_seconds)

    def _concurrent(self, unseen: Iterable[Admitted], own: NamedWorkload) -> Part | None:
        """A release takes the place of the one of its own workload that is under way."""
        most = self.rules.concurrent
        if most is None:
            return None
        new = {each.workload: None for each in unseen if each.workload not in self._busy and each.workload != own}
        if len(self._busy) - (own in self._busy) + len(new) < most:
            return None
        found = [each for each in (*self._busy, *new) if each != own]
        named = ", ".join(each.text for each in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return Part(
            f"{_releases(len(found))} {'is' if len(found) == 1 else 'are'} under way (at most {most}): {named}{more}"
        )


def _releases(number: int) -> str:
    return "1 release" if number == 1 else f"{number} releases"


def in_force(limit: ReleaseLimit) -> Limit | None:
    """The limit; None if it is being deleted."""
    metadata, status = limit.metadata, limit.status
    if metadata.deletion_timestamp is not None:
        return None
    return Limit(metadata.namespace, metadata.name, limit.spec, counted(status.releases), counted(status.under_way))


def counted(found: Iterable[CountedRelease]) -> tuple[Counted, ...]:
    """The releases in a status, the oldest first."""
    read = (
        Counted(NamedWorkload(each.namespace, each.api_version, each.kind, each.name), each.version, unix(each.time))
        for each in found
    )
    return tuple(sorted(read, key=lambda each: each.time))


def closed(limits: Iterable[Limit], release: Release, now: float) -> Iterator[Closed]:
    """The limits of one namespace that are closed for the release."""
    for limit in limits:
        parts = list(limit.closed_parts(release, now)) if selects_any(limit, release) else []
        if parts:
            yield closed_by(limit, parts)


def uncounted(limit: Limit) -> Closed:
    """The limit, while nobody has counted for it yet."""
    return closed_by(limit, [Part("its releases are not counted yet")])


def times(parts: Sequence[Part]) -> tuple[float, float]:
    """Since when the parts are closed, and when all of them are open, Unix seconds; 0: it is not known."""
    since, opens_at = [each.since for each in parts], [each.opens_at for each in parts]
    return (
        min(since) if since and all(since) else 0.0,
        float(math.ceil(max(opens_at))) if opens_at and all(opens_at) else 0.0,
    )


def counts(limit: ReleaseLimit, now: float) -> Iterator[str]:
    """What counts at `now`, Unix seconds, and how much may: a text for each part."""
    spec, status = limit.spec, limit.status
    if spec.rate is not None:
        begun = sum(unix(each.time) > now - spec.rate.period_seconds for each in status.releases)
        yield f"{begun} of {spec.rate.releases} releases in {spec.rate.period_seconds} s"
    if spec.concurrent is not None:
        yield f"{len(status.under_way)} of {spec.concurrent} releases under way"
    if spec.quiet_seconds is not None:
        yield f"quiet for {spec.quiet_seconds} s after a success"
    if status.trip is not None:
        yield f"the fuse tripped: ReleaseFreeze {status.trip.freeze}"
    elif spec.fuse is not None:
        begin = max(unix(status.counted_since), now - spec.fuse.period_seconds)
        failed = sum(unix(each.time) > begin for each in status.failures)
        yield f"{failed} of {spec.fuse.failures} failures in {spec.fuse.period_seconds} s"


def closed_by(limit: Limit, parts: Sequence[Part]) -> Closed:
    """What a limit with these closed parts says."""
    since, opens_at = times(parts)
    return Closed(
        kind=RELEASE_LIMITS.kind,
        namespace=limit.namespace,
        name=limit.name,
        rules=limit.rules,
        reason="",
        what="; ".join(each.what for each in parts),
        since=rfc3339(since) if since else "",
        opens_at=rfc3339(opens_at) if opens_at else "",
    )


LIMITS = Gate(RELEASE_LIMITS, ReleaseLimit, in_force, closed)
