"""Who may begin next under ReleaseLimits with `whenClosed: Hold`.

Only the leader lets held releases begin, so a place is given once: from the decision until its outcome is stored, the
release keeps its place here. What has begun, and who waits, follows from the caches. A new leader counts anew before
it lets any release begin.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
class _Counted:
    limit: Limit
    waiting: Sequence[Turn]


class Turns:
    """The releases of all limits that hold."""

    def __init__(self) -> None:
        self._counted: dict[Place, _Counted] = {}
        self._taken: dict[Place, dict[Turn, bool]] = {}
        """The releases that have a place which the count does not know. True: their begin is stored."""
        self._handlers: list[Callable[[WorkloadKey], None]] = []

    def add_handler(self, handler: Callable[[WorkloadKey], None]) -> None:
        """`handler` is called with each workload whose waiting release may begin."""
        self._handlers.append(handler)

    def clear(self) -> None:
        """Forget everything: this process becomes the leader, and another one has decided meanwhile."""
        self._counted.clear()
        self._taken.clear()

    def forget(self, place: Place) -> None:
        """The limit holds no release any more."""
        self._counted.pop(place, None)
        self._taken.pop(place, None)

    def count(self, limit: Limit, waiting: Sequence[Turn], now: float) -> None:
        """What counts, and which releases wait for the limit, the oldest first, as the caches are at this moment."""
        place = limit.place
        self._counted[place] = _Counted(limit, waiting)
        self._taken[place] = {turn: False for turn, stored in self._taken.get(place, {}).items() if not stored}
        for turn in waiting:
            if self._parts_closed(place, turn, now):
                return  # nor may those after it
            for handler in self._handlers:
                handler(turn.key)

    def limit(self, place: Place, turn: Turn, now: float) -> tuple[Limit, Sequence[Admitted]] | None:
        """The limit as it is counted, and the releases that have a place before this one; None: it is not counted
        yet."""
        counted = self._counted.get(place)
        if counted is None:
            return None
        waiting = counted.waiting
        ahead = waiting[: waiting.index(turn)] if turn in waiting else waiting
        before = dict.fromkeys((*self._taken.get(place, ()), *ahead))
        return counted.limit, [Admitted(each.workload, each.version, now) for each in before if each != turn]

    def take(self, places: Iterable[Place], turn: Turn) -> None:
        """The release begins, unless something else keeps it back: it has a place until `settle`."""
        for place in places:
            self._taken.setdefault(place, {})[turn] = False

    def settle(self, key: WorkloadKey, begun: Callable[[Turn], bool]) -> None:
        """A decision about the workload was carried out. `begun`: whether the cache shows that the release has
        begun."""
        for taken in self._taken.values():
            for turn in [each for each, stored in taken.items() if each.key == key and not stored]:
                if begun(turn):
                    taken[turn] = True
                else:
                    del taken[turn]

    def _parts_closed(self, place: Place, turn: Turn, now: float) -> bool:
        found = self.limit(place, turn, now)
        if found is None:
            return True
        limit, before = found
        asked = Release(turn.workload.namespace, {}, (), workload=turn.workload, version=turn.version)
        return any(limit.closed_parts(replace(asked, admitted={place: before}), now))
