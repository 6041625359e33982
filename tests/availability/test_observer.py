"""The replay of a watch of pods: which budgets it finds overdrawn."""

from typing import Any

from bench.availability.observer import Budget, Overdraft, PodEvent, replay

WEB = Budget("web", total=3, desired=2)


def event(version: int, name: str, ready: bool = True, type_: str = "MODIFIED", **metadata: Any) -> PodEvent:
    """An event of a pod of `web`. Its uid is its name."""
    metadata = {"uid": name, "resourceVersion": str(version), "labels": {"app": "web"}, **metadata}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return PodEvent(type_, {"metadata": metadata, "status": {"phase": "Running", "conditions": [condition]}})


def deleting(version: int, name: str) -> PodEvent:
    return event(version, name, deletionTimestamp="2026-01-01T00:00:00Z")


STARTED = [event(1, "a"), event(2, "b"), event(3, "c")]


def test_as_many_pods_as_the_budget_allows_may_be_missing() -> None:
    found = replay([*STARTED, deleting(4, "a")], [WEB], {"a"})
    assert (found.overdrafts, found.most, found.disrupted, found.unasked) == ((), 1, 1, 0)


def test_one_admitted_disruption_too_many_overdraws_the_budget() -> None:
    found = replay([*STARTED, deleting(4, "a"), deleting(5, "b")], [WEB], {"a", "b"})
    assert found.overdrafts == (Overdraft("web", version=5, unavailable=2, allowed=1),)


def test_a_deleted_pod_is_missing_until_its_replacement_is_ready() -> None:
    events = [*STARTED, deleting(4, "a"), event(5, "a", type_="DELETED"), event(6, "d", ready=False)]
    assert replay([*events, deleting(7, "b")], [WEB], {"a", "b"}).overdrafts != ()
    assert replay([*events, event(7, "d"), deleting(8, "b")], [WEB], {"a", "b"}).overdrafts == ()


def test_a_pod_changed_in_place_is_missing_until_it_is_ready_again() -> None:
    changed = [*STARTED, event(4, "a", ready=False)]
    assert replay([*changed, deleting(5, "b")], [WEB], {"a", "b"}).overdrafts != ()
    assert replay([*changed, event(5, "a"), deleting(6, "b")], [WEB], {"a", "b"}).overdrafts == ()


def test_a_new_pod_replaces_no_pod_that_restarts_in_place() -> None:
    events = [*STARTED, event(4, "a", ready=False), deleting(5, "b"), event(6, "d"), event(7, "c", ready=False)]
    found = replay(events, [Budget("web", total=3, desired=1)], {"a", "b", "c"})
    assert (found.overdrafts, found.most) == ((), 2)
    assert len(replay(events, [WEB], {"a", "b", "c"}).overdrafts) == 2


def test_a_pod_that_restarts_and_is_then_deleted_is_missing_once() -> None:
    events = [*STARTED, event(4, "a", ready=False), deleting(5, "a"), event(6, "a", type_="DELETED")]
    found = replay(events, [WEB], {"a"})
    assert (found.most, found.disrupted) == (1, 1)


def test_a_pod_that_became_unavailable_without_an_admitted_disruption_overdraws_nothing() -> None:
    found = replay([*STARTED, event(4, "a", ready=False), deleting(5, "b")], [WEB], {"b"})
    assert (found.overdrafts, found.disrupted, found.unasked) == ((), 1, 1)


def test_a_surge_of_pods_makes_up_for_missing_ones() -> None:
    surge = [*STARTED, event(4, "d"), deleting(5, "a"), deleting(6, "b")]
    assert replay(surge, [WEB], {"a", "b"}).overdrafts == ()
    assert replay([*surge, deleting(7, "c")], [WEB], {"a", "b", "c"}).overdrafts != ()


def test_pods_that_were_never_ready_are_not_missing() -> None:
    starting = [event(number, name, ready=False) for number, name in enumerate("abc", start=1)]
    found = replay([*starting, deleting(4, "a"), deleting(5, "b")], [WEB], {"a", "b"})
    assert (found.overdrafts, found.most, found.disrupted) == ((), 0, 0)


def test_events_are_replayed_in_the_order_of_their_versions() -> None:
    events = [deleting(20, "b"), event(10, "d"), deleting(9, "a"), *STARTED]
    assert replay(events, [WEB], {"a", "b"}).overdrafts == ()


def test_budgets_are_counted_apart() -> None:
    other = [event(version, name, labels={"app": "db"}) for version, name in ((4, "x"), (5, "y"))]
    gone = event(7, "x", labels={"app": "db"}, type_="DELETED")
    found = replay([*STARTED, *other, deleting(6, "a"), gone], [WEB, Budget("db", 2, 1)], {"a", "x"})
    assert (found.overdrafts, found.most, found.disrupted) == ((), 1, 2)
