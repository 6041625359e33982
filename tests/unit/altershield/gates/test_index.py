"""The index of gates leaves out no gate that judges a release."""

from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.rules import Judged, WhenClosed
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.selectors import Operator, Requirement, Selector
from altershield.gates.index import Index
from altershield.gates.release import Release, selects_any, selects_namespace
from tests.unit.altershield.gates.placed import freeze, limit

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
