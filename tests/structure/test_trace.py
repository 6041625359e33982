"""The files and the turns back of a walk follow from its calls."""

from tests.structure.trace import Call, Walk


def walk(*calls: Call) -> Walk:
    return Walk(calls=list(calls))


def test_file_has_its_place_where_it_is_entered_first() -> None:
    assert walk(Call("a", ""), Call("b", "a"), Call("c", "a"), Call("b", "a")).files() == ["a", "b", "c"]


def test_caller_that_was_entered_before_the_walk_counts() -> None:
    assert walk(Call("b", "a")).files() == ["a", "b"]


def test_call_further_up_that_leads_on_is_a_turn_back() -> None:
    back = Call("a", "b")
    assert walk(Call("a", ""), Call("b", "a"), back, Call("c", "a", back)).turns() == [("a", "b")]


def test_call_further_up_that_ends_there_is_no_turn_back() -> None:
    back = Call("a", "b")
    assert walk(Call("a", ""), Call("b", "a"), back, Call("a", "a", back)).turns() == []


def test_return_is_no_turn_back() -> None:
    first = Call("a", "")
    assert walk(first, Call("b", "a", first), Call("c", "a", first), Call("b", "a", first)).turns() == []
