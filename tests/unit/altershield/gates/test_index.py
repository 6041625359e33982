"""The index of gates leaves out no gate that judges a release."""

import dataclasses
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.rules import GateMode, Judged, WhenClosed
from altershield.api.gates.windows import WindowType
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.selectors import Operator, Requirement, Selector
from altershield.gates.freezes import FREEZES, Freeze
from altershield.gates.gate import Gate
from altershield.gates.index import Index
from altershield.gates.release import Placed, Release, by_name, selects_any, selects_namespace
from altershield.gates.windows import WINDOWS, Window
from tests.unit.altershield.gates.placed import HOUR, freeze, limit, window

_labels = st.dictionaries(st.sampled_from("kl"), st.sampled_from("xy"), max_size=2)
_expressions = st.lists(
    st.builds(Requirement, st.sampled_from("kl"), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    max_size=1,
).map(tuple)
_selectors = st.builds(Selector, _labels, _expressions)
_freezes = st.builds(
    lambda selector, of_namespace, own: freeze(selector=selector, namespace_selector=of_namespace, namespace=own),
    _selectors,
    st.none() | _selectors,
    st.sampled_from([SYSTEM_NAMESPACE, "shop"]),
)
_releases = st.builds(
    lambda labels, of_namespace: Release("shop", of_namespace, tuple(labels), Judged.UPDATE),
    st.lists(_labels, min_size=1, max_size=3),
    _labels,
)


@given(st.lists(_freezes, max_size=6), _releases)
def test_no_gate_that_selects_the_release_is_left_out(freezes: list[object], release: Release) -> None:
    selecting = [
        each
        for each in freezes
        if selects_namespace(each, release, SYSTEM_NAMESPACE) and selects_any(each, release)  # type: ignore[arg-type]
    ]
    found = Index(freezes, SYSTEM_NAMESPACE).candidates(release)  # type: ignore[type-var]
    assert [each for each in selecting if not any(each is other for other in found)] == []


def test_gates_of_other_labels_are_not_looked_at() -> None:
    freezes = [freeze(name=str(number), selector=Selector({"team": str(number)})) for number in range(1000)]
    found = Index(freezes, SYSTEM_NAMESPACE)
    assert [each.name for each in found.candidates(Release("shop", {}, ({"team": "7"},)))] == ["7"]


def test_an_index_knows_whether_a_gate_holds_releases() -> None:
    assert Index([freeze(), freeze(when_closed=WhenClosed.HOLD)], SYSTEM_NAMESPACE).holds
    assert not Index([freeze()], SYSTEM_NAMESPACE).holds
    assert not Index([limit(concurrent=1)], SYSTEM_NAMESPACE).holds
    assert Index([limit(concurrent=1, when_closed=WhenClosed.HOLD)], SYSTEM_NAMESPACE).holds


_hours = st.integers(0, 24)
_times = st.lists(_hours, unique=True, max_size=6).map(lambda found: list(itertools.pairwise(sorted(found)))[::2])
_windows = st.builds(
    lambda type_, times, **rules: window(type_, *times, **rules),
    st.sampled_from(WindowType),
    _times,
    selector=_selectors,
    mode=st.sampled_from(GateMode),
    min_remaining_seconds=st.sampled_from([0, 3600]),
    computed_until=_hours.map(lambda hour: hour * HOUR),
)
_timed_freezes = st.builds(lambda a, b, selector: freeze(a, b, selector=selector), _hours, _hours, _selectors)


def _named(gates: list[Window | Freeze]) -> list[Window | Freeze]:
    return [dataclasses.replace(each, name=str(number)) for number, each in enumerate(gates)]


@given(st.lists(_windows | _timed_freezes, max_size=6).map(_named), st.lists(st.tuples(_hours, _releases), max_size=8))
def test_gates_that_are_left_out_for_a_while_are_open(gates: list[Placed], asked: list[tuple[int, Release]]) -> None:
    kinds: list[Gate[Any, Any]] = [WINDOWS, FREEZES]
    for gate in kinds:
        own = [each for each in gates if isinstance(each, Window) is (gate is WINDOWS)]
        index = Index[Placed](own, SYSTEM_NAMESPACE)
        for hour, release in asked:
            now = hour * HOUR
            few = index.at(now, gate.may_be_closed).candidates(release)
            found, expected = (by_name(list(gate.closed(each, release, now))) for each in (few, own))
            assert found == expected


def test_gates_that_are_open_are_not_looked_at() -> None:
    day = window("Deny", (10, 20))
    other, always = window("Deny", (10, 20), selector=Selector({"team": "a"})), window("Allow", (0, 30))
    index = Index([day, other, always], SYSTEM_NAMESPACE)
    release = Release("shop", {}, ({},))
    assert index.at(9 * HOUR, WINDOWS.may_be_closed).all == ()
    assert index.at(10 * HOUR, WINDOWS.may_be_closed).candidates(release) == [day]
    assert index.at(20 * HOUR, WINDOWS.may_be_closed).all == ()
