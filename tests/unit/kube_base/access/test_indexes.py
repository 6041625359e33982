"""Indexes of cached objects, and the store of objects by namespace and name."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kube_base.access.indexes import Indexes
from kube_base.access.objects import Store

_VALUES = st.frozensets(st.sampled_from("xyz"))


@dataclass
class Thing:
    """An object with values. Two different objects may be equal."""

    name: str
    values: frozenset[str]


def indexes() -> Indexes[str, Thing]:
    found: Indexes[str, Thing] = Indexes(lambda thing: thing.name)
    found.add("by", lambda thing: thing.values)
    return found


@given(st.lists(st.tuples(st.integers(0, 14), _VALUES | st.none()), max_size=120))
def test_find_returns_the_objects_with_the_value(changes: list[tuple[int, frozenset[str] | None]]) -> None:
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


def test_value_without_objects_is_removed_from_the_index() -> None:
    index = indexes()
    things = [Thing(f"p{number}", frozenset("x")) for number in range(20)]
    for thing in things:
        index.replace(None, thing)
    assert index.find("by", "x") == things
    for thing in things:
        index.replace(thing, None)
    assert index._found == {"by": {}}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers() | st.none())))
def test_store_behaves_like_a_dict_with_tuples_as_keys(changes: list[tuple[str, str, int | None]]) -> None:
    store, expected = Store[int](), dict[tuple[str, str], int]()
    for namespace, name, value in changes:
        key = (namespace, name)
        if value is not None:
            store[key] = expected[key] = value
        elif key in expected:
            del store[key]
            del expected[key]
        assert (key in store, store.get(key)) == (key in expected, expected.get(key))
        assert len(store) == len(expected)
        assert sorted(store) == sorted(expected)
        assert sorted(store.values()) == sorted(expected.values())
