"""Indexes find the same keys in whichever form they hold them."""

from hypothesis import given
from hypothesis import strategies as st

from altershield.kube.indexes import Indexes

Key = tuple[str, str]
Values = frozenset[str]

_VALUES = st.frozensets(st.sampled_from("xyz"))


def indexes() -> Indexes[Key, Values]:
    found: Indexes[Key, Values] = Indexes()
    found.add("by", lambda values: values)
    return found


@given(st.lists(st.tuples(st.integers(0, 14), _VALUES | st.none()), max_size=120))
def test_what_is_found_is_what_holds_the_value(changes: list[tuple[int, Values | None]]) -> None:
    index, objects = indexes(), dict[Key, Values]()
    for number, new in changes:
        key = ("shop", f"p{number}")
        index.replace(key, objects.pop(key, None), new)
        if new is not None:
            objects[key] = new
        for value in "xyz":
            found = index.find("by", value)
            assert sorted(found) == sorted(key for key, values in objects.items() if value in values)


def test_a_value_that_nobody_holds_any_more_leaves_nothing_behind() -> None:
    index = indexes()
    keys = [("shop", f"p{number}") for number in range(20)]
    for key in keys:
        index.replace(key, None, frozenset("x"))
    assert index.find("by", "x") == keys
    for key in keys:
        index.replace(key, frozenset("x"), None)
    assert index._found == {"by": {}}
