"""Who may begin next under ReleaseLimits with `whenClosed: Hold`.

Only the leader lets held releases begin, so a place is given once: from the decision until its outcome is stored, the
release keeps its place here. What has begun, and who waits, follows from the caches. A new leader counts anew before
it lets any release begin.

A release that waits has a place before the others only if all limits that hold it have room: one of them never keeps
the places of another one free.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from altershield.api.gates.named_workload import NamedWorkload
from altershield.gates.limits import Limit
from altershield.gates.release import Admitted, Place, Release
from reconciler.cluster.ownership import WorkloadKey


class Turn(NamedTuple):
    """A release that waits, or begins."""

    key: WorkloadKey
    workload: NamedWorkload
    version: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A release that waits for nothing else than limits."""

    turn: Turn
    created: int
    """Unix seconds."""
    succeeded: float
    """When the release before it succeeded, Unix seconds; 0: it did not."""
    places: frozenset[Place]
    """The limits that hold it."""

    @property
    def order(self) -> tuple[int, str]:
        """The oldest first."""
        return self.created, self.turn.workload.text

    def judged(self, place: Place, before: Sequence[Admitted]) -> Release:
        """The release, for a limit that holds it. `before`: those that have a place before it."""
        workload, version = self.turn.workload, self.turn.version
        return Release(
            workload.namespace,
            {},
            (),
            workload=workload,
            version=version,
            succeeded=self.succeeded,
            admitted={place: before},
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    limit: Limit
    waiting: Sequence[Waiting]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Who may begin. It stays the same until a count or a place changes, or a limit opens."""

    waiting: Mapping[Turn, Waiting]
    next: Mapping[Place, Sequence[Waiting]]
    """Those that may begin, by the limits that count them, the oldest first."""
    opens_at: Mapping[Place, float]
    """When a limit opens for the first of those that it keeps back, Unix seconds."""

    def before(self, place: Place, turn: Turn) -> Iterator[Turn]:
        """Those that have a place before this release."""
        own = self.waiting.get(turn)
        for each in self.next.get(place, ()):
            if own is None or each.order < own.order:
                yield each.turn


class Turns:
    """The releases of all limits that hold."""

    def __init__(self) -> None:
        self._counted: dict[Place, _Counted] = {}
        """The latest count last."""
        self._taken: dict[Place, dict[Turn, bool]] = {}
        """The releases that have a place which the count does not know. True: their begin is stored."""
        self._known: _Plan | None = None
        self._handlers: list[Callable[[WorkloadKey], None]] = []

    def add_handler(self, handler: Callable[[WorkloadKey], None]) -> None:
        """`handler` is called with each workload whose waiting release may begin."""
        self._handlers.append(handler)

    def clear(self) -> None:
        """Forget everything: this process becomes the leader, and another one has decided meanwhile."""
        self._counted.clear()
        self._taken.clear()
        self._known = None

    def forget(self, place: Place) -> None:
        """The limit holds no release any more."""
        self._counted.pop(place, None)
        self._taken.pop(place, None)
        self._known = None

    def count(self, limit: Limit, waiting: Sequence[Waiting], now: float) -> None:
        """What counts, and which releases wait for the limit, as the caches are at this moment."""
        place = limit.place
        self._counted.pop(place, None)
        self._counted[place] = _Counted(limit, waiting)
        self._taken[place] = {turn: False for turn, stored in self._taken.get(place, {}).items() if not stored}
        self._known = None
        self._wake(now)

    def limit(self, place: Place, turn: Turn, now: float) -> tuple[Limit, Sequence[Admitted]] | None:
        """The limit as it is counted, and the releases that have a place before this one; None: it is not counted
        yet."""
        counted = self._counted.get(place)
        if counted is None:
            return None
        before = dict.fromkeys((*self._taken.get(place, ()), *self._plan(now).before(place, turn)))
        return counted.limit, _admitted((each for each in before if each != turn), now)

    def opens_at(self, place: Place, now: float) -> float | None:
        """When the limit opens for the first of those that it keeps back, Unix seconds; None: it is not known. It has
        to be counted again then."""
        return self._plan(now).opens_at.get(place)

    def take(self, places: Iterable[Place], turn: Turn) -> None:
        """The release begins, unless something else keeps it back: it has a place until `settle`."""
        for place in places:
            self._taken.setdefault(place, {})[turn] = False
            self._known = None

    def settle(self, key: WorkloadKey, begun: Callable[[Turn], bool], now: float) -> None:
        """A decision about the workload was carried out. `begun`: whether the cache shows that the release has
        begun."""
        returned: set[Turn] = set()
        for taken in self._taken.values():
            for turn in [each for each, stored in taken.items() if each.key == key and not stored]:
                if begun(turn):
                    taken[turn] = True
                else:
                    del taken[turn]
                    returned.add(turn)
        if returned:
            self._known = None
            # one that waits for limits only keeps its place before the others
            if not returned <= self._plan(now).waiting.keys():
                self._wake(now)

    def _wake(self, now: float) -> None:
        for key in {each.turn.key: None for found in self._plan(now).next.values() for each in found}:
            for handler in self._handlers:
                handler(key)

    def _plan(self, now: float) -> _Plan:
        if self._known is None or now >= min(self._known.opens_at.values(), default=inf):
            self._known = self._planned(now)
        return self._known

    def _planned(self, now: float) -> _Plan:
        """Give the places that are left to those that wait, the oldest first."""
        waiting = {each.turn: each for counted in self._counted.values() for each in counted.waiting}
        counted_by: dict[Turn, list[Place]] = {}
        for place, counted in self._counted.items():
            for each in counted.waiting:
                counted_by.setdefault(each.turn, []).append(place)
        places = {place: dict.fromkeys(taken) for place, taken in self._taken.items()}
        opens_at: dict[Place, float] = {}
        found: dict[Place, list[Waiting]] = {}
        for each in sorted(waiting.values(), key=lambda each: each.order):
            is_closed = False
            for place in each.places:
                if place not in self._counted:
                    is_closed = True
                    continue
                asked = each.judged(place, _admitted(places.get(place, ()), now))
                for part in self._counted[place].limit.closed_parts(asked, now):
                    is_closed = True
                    if part.opens_at:
                        opens_at[place] = min(part.opens_at, opens_at.get(place, inf))
            if not is_closed:
                for place in counted_by[each.turn]:
                    found.setdefault(place, []).append(each)
                    places.setdefault(place, {})[each.turn] = None
        return _Plan(waiting, found, opens_at)


def _admitted(turns: Iterable[Turn], now: float) -> Sequence[Admitted]:
    return [Admitted(each.workload, each.version, now) for each in turns]
