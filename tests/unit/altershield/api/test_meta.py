from altershield.api.meta import Condition, find_condition, plain_time, set_condition, time_of
from kube_base.times import rfc3339


def condition(status: str, reason: str = "R") -> Condition:
    return Condition("Verified", status, reason)


def test_new_status_changes_the_transition_time_and_a_new_reason_does_not() -> None:
    first = set_condition((), condition("Unknown"), 100)
    same = set_condition(first, condition("Unknown", "Other"), 200)
    moved = set_condition(same, condition("True"), 300)
    assert [c[0].last_transition_time for c in (first, same, moved)] == [rfc3339(100), rfc3339(100), rfc3339(300)]
    found = find_condition(moved, "Verified")
    assert found is not None
    assert found.is_true


def test_set_condition_keeps_other_conditions() -> None:
    both = set_condition(set_condition((), condition("True"), 1), Condition("RolledBack", "False", "R"), 2)
    assert {c.type for c in both} == {"Verified", "RolledBack"}


def test_times_of_our_kinds_are_utc() -> None:
    assert plain_time(1683791173) == "2023-05-11 07:46:13"


def test_text_that_is_no_time_has_the_default() -> None:
    assert (time_of("soon", 5), time_of("1970-01-01T00:00:07Z", 5)) == (5, 7)
