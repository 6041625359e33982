"""What the reconcilers have to have written when they are at rest."""

from dataclasses import dataclass, field
from typing import Any

from altershield.api.condition_types import ConditionType
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec
from altershield.api.meta import find_condition
from altershield.api.names import SYSTEM_NAMESPACE as SYSTEM
from altershield.api.policy import Mode
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_WINDOWS
from altershield.api.selectors import Selector
from kube_base.times import unix

from . import oracle, walk
from .stories import is_wrong
from .world import NAMESPACES_OF_TENANTS, World, own_labels

DAY = 86_400


@dataclass
class Fuse:
    """What counts for the fuse of one limit."""

    failures: dict[str, tuple[float, NamedWorkload]] = field(default_factory=dict)
    """By ChangeWorkload."""
    since: float = 0.0
    tripped: str = ""
    """The freeze of the trip that is not over."""
    trips: int = 0
    last: int = 0
    """The number of its last freeze."""
    unsure: bool = False
    """Whether labels have changed since releases were counted."""


class Settled:
    def __init__(self, world: World) -> None:
        self._world = world
        self._accepted: dict[str, ReleaseWindowSpec] = {}
        """The spec that was accepted last, by uid of the window."""
        self._fuses: dict[str, Fuse] = {}
        """By uid of the limit."""
        self._before = world.now

    def check(self) -> None:
        world = self._world
        for window in world.api.of(RELEASE_WINDOWS):
            self._check_window(window)
        for limit in world.api.of(RELEASE_LIMITS):
            if limit.spec.fuse is not None:
                self._check_fuse(limit)
        self._before = world.now

    # windows

    def _check_window(self, window: ReleaseWindow) -> None:
        own, spec, status = window.metadata, window.spec, window.status
        wrong = own.namespace != SYSTEM and spec.namespace_selector is not None
        wrong = wrong or is_wrong(spec)
        if not wrong:
            self._accepted[own.uid] = spec
        expected = self._accepted.get(own.uid)
        assert status.accepted == expected, f"{status.accepted} is in force, and not {expected}"
        condition = find_condition(status.conditions, ConditionType.ACCEPTED)
        assert condition is not None
        assert condition.is_true is not wrong, condition
        if expected is None:
            return
        now, until, start = self._world.now, unix(status.computed_until), self._world.start
        assert until >= now + (28 * DAY if len(status.intervals) < 200 else DAY)
        edges = [unix(edge) for each in status.intervals for edge in (each.from_, each.to)]
        for at in {now, *edges, *(each - 1 for each in edges), *(now + hours * 7_321 for hours in range(40))}:
            if now <= at < until:
                inside = any(unix(each.from_) <= at < unix(each.to) for each in status.intervals)
                assert inside is walk.is_inside(expected, start, at), f"{at} {inside} {expected}"
        assert status.open is oracle.is_open(window, start, now), f"{status.open} {expected}"
        edge = unix(status.next_transition_time or None)
        if now < edge < until - 2 * DAY:  # near the end of its times, a window seems to close
            assert oracle.is_open(window, start, edge) is not status.open, f"{edge} {expected}"
            for part in range(8):
                at = now + (edge - 1 - now) * part / 8
                assert oracle.is_open(window, start, at) is status.open, f"{at} before {edge} {expected}"

    # fuses

    def _check_fuse(self, limit: ReleaseLimit) -> None:
        world, own, status = self._world, limit.metadata, limit.status
        assert limit.spec.fuse is not None
        known = self._fuses.setdefault(own.uid, Fuse(last=_number(limit)))
        self._count(limit, known)
        placed = (each for each in world.api.of(RELEASE_FREEZES) if each.metadata.namespace == own.namespace)
        freezes = {each.metadata.name: each for each in placed}
        if known.tripped:
            freeze = freezes.get(known.tripped)
            if freeze is None or (freeze.spec.until and unix(freeze.spec.until) <= world.now):
                known.tripped, known.since = "", unix(status.counted_since or None)
                assert self._before - 1 <= known.since <= world.now, "earlier failures count still"
        period = limit.spec.fuse.period_seconds
        latest: dict[NamedWorkload, float] = {}
        for at, workload in sorted(known.failures.values(), key=lambda each: each[0]):
            if at > known.since:
                latest[workload] = at
        last = max(latest.values(), default=0.0)
        recent = {workload for workload, at in latest.items() if at > last - period}
        if known.unsure:
            known.tripped = status.trip.freeze if status.trip is not None else ""
            return
        if not known.tripped and last > world.now - period and len(recent) >= limit.spec.fuse.failures:
            assert status.trip is not None, f"{len(recent)} releases failed, and the fuse has not tripped"
            known.tripped = status.trip.freeze
            known.trips += 1
            blown = [each for each in freezes.values() if each.spec.fuse and each.spec.fuse.limit == own.name]
            new = [each for each in blown if _number(each) > known.last]
            assert len(new) <= 1, "two freezes"
            freeze = freezes[known.tripped]
            assert freeze.spec.fuse is not None
            known.last = max(known.last, _number(freeze))
            if _number(freeze) > _number(limit):  # else it is that of an earlier limit of this name
                assert set(freeze.spec.fuse.workloads) == recent, f"{freeze.spec.fuse.workloads} {recent}"
                assert (freeze.spec.selector, freeze.spec.mode) == (limit.spec.selector, limit.spec.mode)
        assert (status.trip.freeze if status.trip is not None else "") == known.tripped, f"{status.trip} {known}"
        assert status.trip is None or status.trip.made

    def _count(self, limit: ReleaseLimit, known: Fuse) -> None:
        """Add the failures that count: of releases that had not succeeded, with a policy that enforces."""
        world = self._world
        known.unsure |= world.labels_changed and limit.spec.selector != Selector()
        for workload in world.workloads.values():
            obj = world.stored(workload)
            for release in world.releases(workload) if obj is not None else ():
                failed = release.status.status == "Suspend" and not release.status.reached
                if not failed or release.spec.policy.mode is not Mode.ENFORCE or obj is None:
                    continue
                asked = oracle.Asked(
                    workload.named, NAMESPACES_OF_TENANTS[workload.namespace], (own_labels(obj),),
                    limit.spec.judges[0], "", "", repairs=False, succeeded=0.0,
                )  # fmt: skip
                at = float(release.status.entry_time_unix)
                if oracle.selects(limit, asked) and at > world.now - limit.spec.fuse.period_seconds:  # type: ignore
                    known.failures.setdefault(release.metadata.uid, (at, workload.named))


def _number(obj: Any) -> int:
    """Objects have numbers in the order in which they were created."""
    return int(obj.metadata.uid.rpartition("-")[2])
