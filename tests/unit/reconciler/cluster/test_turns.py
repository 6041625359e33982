"""Who may begin under limits that hold: the oldest first, and never more than there is room for."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.limits import Rate
from altershield.api.gates.rules import WhenClosed
from altershield.gates.limits import Counted, Limit
from altershield.gates.release import Place
from kube_base.resources import DEPLOYMENTS
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.turns import Turn, Turns, Waiting
from tests.unit.altershield.gates.placed import limit, workload

NOW = 100_000.0
HOUR = 3600
ALL = "*"


def place(name: str) -> Place:
    return limit(name=name).place


def turn(name: str) -> Turn:
    return Turn(WorkloadKey(DEPLOYMENTS.group_kind, "shop", name), workload(name), "v1")


class World:
    """Limits, what counts for them, and who waits, the oldest first. `may_begin` is the decision about a release.

    `limits`: the rules by name. `select`: the releases that a limit judges; all of them, if it is not named.
    """

    def __init__(self, limits: dict[str, dict[str, Any]], **select: str) -> None:
        self.limits = limits
        self._select = select
        self.turns = Turns()
        self.woken: list[str] = []
        self.turns.add_handler(lambda key: self.woken.append(key.name))
        self.begun: dict[str, float] = {}
        self.waiting: list[str] = []
        self.succeeded: dict[str, float] = {}
        """When the release before succeeded."""
        self.now = NOW

    def holding(self, name: str) -> list[str]:
        return [each for each in self.limits if self._select.get(each, ALL) == ALL or name in self._select[each]]

    def as_waiting(self, name: str) -> Waiting:
        created = self.waiting.index(name) if name in self.waiting else len(self.waiting)
        places = frozenset(place(each) for each in self.holding(name))
        return Waiting(turn(name), created, self.succeeded.get(name, 0.0), places)

    def count(self, *names: str) -> list[str]:
        """Count by the caches. Returns whose turn it is."""
        for name in names or self.limits:
            self.woken.clear()
            selected = [each for each in self.waiting if each and name in self.holding(each)]
            self.turns.count(self.limit(name), [self.as_waiting(each) for each in selected], self.now)
        return sorted({*self.woken})

    def limit(self, name: str) -> Limit:
        begun = [Counted(workload(each), "v1", at) for each, at in self.begun.items() if name in self.holding(each)]
        return limit(name=name, when_closed=WhenClosed.HOLD, releases=begun, under_way=begun, **self.limits[name])

    def closed(self, name: str) -> list[str]:
        """What is closed for a release."""
        texts = []
        for each in self.holding(name):
            found = self.turns.limit(place(each), turn(name), self.now)
            if found is None:
                texts.append("not counted")
                continue
            counted, before = found
            asked = self.as_waiting(name).judged(place(each), before)
            texts += [part.what for part in counted.closed_parts(asked, self.now)]
        return texts

    def may_begin(self, name: str) -> bool:
        """The decision about a release, which has a place from now on if it may begin."""
        if self.closed(name):
            return False
        self.turns.take([place(each) for each in self.holding(name)], turn(name))
        return True

    def settle(self, name: str, *, begun: bool) -> None:
        """The decision was carried out, and the caches show it."""
        if begun:
            self.begun[name] = self.now
            if name in self.waiting:
                self.waiting[self.waiting.index(name)] = ""  # the others keep their age
        self.turns.settle(turn(name).key, lambda _: begun, self.now)


def one(**rules: Any) -> World:
    """A world with one limit."""
    return World({"l": rules or {"concurrent": 2}})


def test_nobody_begins_before_this_leader_has_counted() -> None:
    world = one()
    assert not world.may_begin("a")
    world.count()
    assert world.may_begin("a")
    world.turns.clear()
    assert not world.may_begin("b")


def test_the_oldest_begin_and_the_others_wait() -> None:
    world = one()
    world.waiting = ["a", "b", "c"]
    assert world.count() == ["a", "b"]
    assert [world.may_begin(each) for each in ("c", "b", "a", "d")] == [False, True, True, False]


def test_a_release_that_nobody_has_counted_comes_after_those_that_wait() -> None:
    world = one()
    world.waiting = ["a"]
    world.count()
    assert world.may_begin("new")
    assert not world.may_begin("newer"), "the last place is for the one that waits"
    assert world.may_begin("a")


def test_a_place_is_given_once_until_the_outcome_is_known() -> None:
    world = one(concurrent=1)
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
    world = one(rate=Rate(1, HOUR))
    world.count()
    assert world.may_begin("a")
    world.settle("a", begun=True)
    assert not world.may_begin("b")
    world.count()
    assert not world.may_begin("b")


def test_a_limit_that_holds_no_more_is_not_counted() -> None:
    world = one()
    world.count()
    world.turns.forget(place("l"))
    assert not world.may_begin("a")


def test_a_release_that_gives_its_place_back_wakes_those_that_wait() -> None:
    world = one(concurrent=1)
    world.waiting = ["a"]
    world.begun = {"b": NOW}
    assert world.count() == []
    del world.begun["b"]
    world.waiting = []
    world.count()
    assert world.may_begin("checked")
    world.waiting = ["a"]
    assert world.count() == []
    world.settle("checked", begun=False)
    assert world.woken == ["a"]
    world.woken.clear()
    assert world.may_begin("a")
    world.settle("a", begun=False)
    assert world.woken == [], "it would ask itself again without end"


def test_a_release_that_another_limit_keeps_back_takes_no_place() -> None:
    world = World({"fleet": {"concurrent": 1}, "quiet": {"quiet_seconds": 1800}}, quiet="a")
    world.waiting, world.succeeded = ["a", "b"], {"a": NOW}
    for _ in range(3):
        assert world.count() == ["b"]
        assert world.closed("b") == []
        assert world.closed("a") == ["the last release of the workload succeeded less than 1800 seconds ago"]
        world.now += 599
    world.now = NOW + 1800
    assert world.count() == ["a"], "it is the oldest"
    assert world.closed("b") == ["1 release is under way (at most 1): deployment shop/a"]


def test_releases_that_their_own_limit_keeps_back_do_not_fill_a_rate() -> None:
    world = World({"fleet": {"rate": Rate(3, HOUR)}, "own": {"quiet_seconds": 604_800}}, own="abc")
    world.waiting, world.succeeded = ["a", "b", "c", "d"], dict.fromkeys("abc", NOW)
    for world.now in (NOW, NOW + 10 * HOUR):
        assert world.count() == ["d"]
        assert world.closed("d") == []


def test_a_release_waits_for_all_limits_that_hold_it_and_the_last_one_wakes_it() -> None:
    world = World({"one": {"concurrent": 1}, "two": {"concurrent": 1}}, one="abx", two="acy")
    world.begun, world.waiting = {"x": NOW, "y": NOW}, ["a", "b", "c"]
    assert world.count() == []
    del world.begun["x"]
    assert world.count("one") == ["b"], "the other limit keeps the oldest back"
    del world.begun["y"]
    assert world.count("two") == ["a"]
    assert [world.may_begin(each) for each in ("b", "c", "a")] == [False, False, True]


def test_limits_that_are_not_counted_yet_keep_their_own_releases_back_only() -> None:
    world = World({"fleet": {"concurrent": 1}, "own": {"concurrent": 1}}, own="a")
    world.waiting = ["a", "b"]
    assert world.count("fleet") == ["b"]
    assert world.closed("a") == ["not counted"]
    assert world.count("own") == ["a"]
    assert world.closed("b")


def test_an_old_count_of_another_limit_keeps_no_place() -> None:
    world = World({"fleet": {"concurrent": 1}, "own": {"concurrent": 1}}, own="a")
    world.waiting = ["a", "b"]
    assert world.count() == ["a"]
    world.waiting = ["b"]
    world.count("fleet")
    assert world.may_begin("b")


def test_a_limit_says_when_it_opens_for_those_that_wait() -> None:
    world = World({"fleet": {"rate": Rate(1, HOUR)}, "own": {"concurrent": 1, "quiet_seconds": 60}}, own="a")
    world.begun, world.waiting, world.succeeded = {"x": NOW - 10, "a": NOW}, ["b"], {"b": NOW}
    world.count()
    assert world.turns.opens_at(place("fleet"), NOW) == NOW + HOUR
    assert world.turns.opens_at(place("own"), NOW) is None
    world.begun, world.waiting, world.succeeded = {}, ["a"], {"a": NOW}
    world.count()
    assert world.turns.opens_at(place("own"), NOW) == NOW + 60
    world.now += 60
    assert world.turns.opens_at(place("own"), world.now) is None
    assert world.count() == ["a"]


_NAMES = "abcdefgh"
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrives", "asks", "settles", "fails", "ends", "rests", "later", "first", "second"]),
        st.sampled_from(_NAMES),
    )
)


@given(most=st.integers(1, 3), steps=_STEPS)
def test_no_order_of_events_lets_more_be_under_way_than_a_limit_says_or_leaves_a_place_without_a_release(
    most: int, steps: Sequence[tuple[str, str]]
) -> None:
    world = World({"first": {"concurrent": most, "quiet_seconds": 60}, "second": {"concurrent": 1}}, second="abcd")
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
                del world.begun[name]
            case "rests" if name not in world.begun:
                world.succeeded[name] = world.now
            case "later":
                world.now += 30
            case "first" | "second":
                world.count(what)
        assert len({*world.begun, *in_flight}) <= most
        assert len({*world.begun, *in_flight} & {*"abcd"}) <= 1
    for name in in_flight:
        world.settle(name, begun=False)
    world.waiting = [each for each in world.waiting if each]
    woken = world.count()
    alone = [each for each in world.waiting if _fits(world, each, most)]
    assert woken[:1] or not alone, "there is room, and nobody is woken"
    if alone:
        assert alone[0] in woken, "the oldest of those that could begin"
        assert world.may_begin(alone[0])


def _fits(world: World, name: str, most: int) -> bool:
    """Whether the release could begin, if nobody else waited."""
    second = {*world.begun} & {*"abcd"}
    rests = name in world.succeeded and world.now < world.succeeded[name] + 60
    return not rests and len(world.begun) < most and (name not in "abcd" or not second)
