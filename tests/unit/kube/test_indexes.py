"""Indexes find the same objects in whichever form they hold them, and objects are found by their places."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from altershield.kube.indexes import Indexes
from altershield.kube.store import Store

_VALUES = st.frozensets(st.sampled_from("xyz"))


@dataclass
class Thing:
    """Two of them may be equal and yet not the same."""

    name: str
    values: frozenset[str]


def indexes() -> Indexes[str, Thing]:
    found: Indexes[str, Thing] = Indexes(lambda thing: thing.name)
    found.add("by", lambda thing: thing.values)
    return found


@given(st.lists(st.tuples(st.integers(0, 14), _VALUES | st.none()), max_size=120))
def test_what_is_found_is_what_holds_the_value(changes: list[tuple[int, frozenset[str] | None]]) -> None:
    index, objects = indexes(), dict[str, Thing]()
    for number, values in changes:
        name = f"p{number}"
        new = Thing(name, values) if values is not None else None
        index.replace(objects.pop(name, None), new)
        if new is not None:
            objects[name] = new
        for value in "xyz":
            found = index.find("by", value)
            assert sorted(map(id, found)) == sorted(id(each) for each in objects.values() if value in each.values)


def test_a_value_that_nobody_holds_any_more_leaves_nothing_behind() -> None:
    index = indexes()
    things = [Thing(f"p{number}", frozenset("x")) for number in range(20)]
    for thing in things:
        index.replace(None, thing)
    assert index.find("by", "x") == things
    for thing in things:
        index.replace(thing, None)
    assert index._found == {"by": {}}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers() | st.none())))
def test_places_are_a_dict(changes: list[tuple[str, str, int | None]]) -> None:
    places, expected = Store[int](), dict[tuple[str, str], int]()
    for namespace, name, value in changes:
        key = (namespace, name)
        if value is not None:
            places[key] = expected[key] = value
        elif key in expected:
            del places[key]
            del expected[key]
        assert (key in places, places.get(key)) == (key in expected, expected.get(key))
        assert len(places) == len(expected)
        assert sorted(places) == sorted(expected)
        assert sorted(places.values()) == sorted(expected.values())
