"""Who may begin under limits that hold: the oldest first, and never more than there is room for."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.limits import Rate
from altershield.api.gates.rules import WhenClosed
from altershield.gates.limits import Counted
from altershield.gates.release import Place
from kube_base.resources import DEPLOYMENTS
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.turns import Turn, Turns
from tests.unit.altershield.gates.placed import limit, release, workload

NOW = 100.0


def turn(name: str) -> Turn:
    return Turn(WorkloadKey(DEPLOYMENTS.group_kind, "shop", name), workload(name), "v1")


class World:
    """A limit, what counts for it, and who waits. `begins` is the decision about a release."""

    def __init__(self, **rules: Any) -> None:
        self.rules = rules or {"concurrent": 2}
        self.turns = Turns()
        self.woken: list[str] = []
        self.turns.add_handler(lambda key: self.woken.append(key.name))
        self.begun: list[str] = []
        self.waiting: list[str] = []

    @property
    def place(self) -> Place:
        return limit().place

    def count(self) -> list[str]:
        """Count by the caches. Returns whose turn it is."""
        self.woken.clear()
        begun = [Counted(workload(each), "v1", NOW) for each in self.begun]
        counted = limit(when_closed=WhenClosed.HOLD, releases=begun, under_way=begun, **self.rules)
        self.turns.count(counted, [turn(each) for each in self.waiting], NOW)
        return list(self.woken)

    def may_begin(self, name: str) -> bool:
        """The decision about a release, which has a place from now on if it may begin."""
        found = self.turns.limit(self.place, turn(name), NOW)
        if found is None:
            return False
        counted, before = found
        asked = release(workload=workload(name), version="v1", admitted={self.place: before})
        if any(counted.closed_parts(asked, NOW)):
            return False
        self.turns.take([self.place], turn(name))
        return True

    def settle(self, name: str, *, begun: bool) -> None:
        """The decision was carried out, and the caches show it."""
        if begun:
            self.begun.append(name)
            if name in self.waiting:
                self.waiting.remove(name)
        self.turns.settle(turn(name).key, lambda _: begun)


def test_nobody_begins_before_this_leader_has_counted() -> None:
    world = World()
    assert not world.may_begin("a")
    world.count()
    assert world.may_begin("a")
    world.turns.clear()
    assert not world.may_begin("b")


def test_the_oldest_begin_and_the_others_wait() -> None:
    world = World()
    world.waiting = ["a", "b", "c"]
    assert world.count() == ["a", "b"]
    assert [world.may_begin(each) for each in ("c", "b", "a", "d")] == [False, True, True, False]


def test_a_release_that_nobody_has_counted_comes_after_those_that_wait() -> None:
    world = World()
    world.waiting = ["a"]
    world.count()
    assert world.may_begin("new")
    assert not world.may_begin("newer"), "the last place is for the one that waits"
    assert world.may_begin("a")


def test_a_place_is_given_once_until_the_outcome_is_known() -> None:
    world = World(concurrent=1)
    world.count()
    assert world.may_begin("a")
    assert not world.may_begin("b")
    world.count()
    assert not world.may_begin("b"), "the begin is not stored yet"
    world.settle("a", begun=False)
    assert world.may_begin("b")
    world.settle("b", begun=True)
    assert not world.may_begin("a"), "the count does not know it yet"
    world.begun.clear()
    world.count()
    assert world.may_begin("a")


def test_a_release_that_began_counts_until_the_count_knows_it_also_for_a_rate() -> None:
    world = World(rate=Rate(1, 3600))
    world.count()
    assert world.may_begin("a")
    world.settle("a", begun=True)
    assert not world.may_begin("b")
    world.count()
    assert not world.may_begin("b")


def test_a_limit_that_holds_no_more_is_not_counted() -> None:
    world = World()
    world.count()
    world.turns.forget(world.place)
    assert not world.may_begin("a")


_NAMES = "abcdefgh"
_STEPS = st.lists(
    st.tuples(st.sampled_from(["arrives", "asks", "settles", "fails", "ends", "count"]), st.sampled_from(_NAMES))
)


@given(most=st.integers(1, 3), steps=_STEPS)
def test_no_order_of_events_lets_more_be_under_way_than_the_limit_says(
    most: int, steps: Sequence[tuple[str, str]]
) -> None:
    world = World(concurrent=most)
    in_flight: set[str] = set()
    for what, name in steps:
        match what:
            case "arrives" if name not in world.begun and name not in world.waiting:
                world.waiting.insert(len(world.waiting) // 2, name)  # also before others
            case "asks" if name not in world.begun and name not in in_flight and world.may_begin(name):
                in_flight.add(name)
            case "settles" | "fails" if name in in_flight:
                in_flight.discard(name)
                world.settle(name, begun=what == "settles")
            case "ends" if name in world.begun:
                world.begun.remove(name)
            case "count":
                world.count()
        assert len(world.begun) + len(in_flight) <= most
