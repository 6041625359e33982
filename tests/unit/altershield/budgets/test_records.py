"""The records of admitted disruptions: their number, their age, and what a live read says."""

import msgspec
import pytest

from altershield.api.budgets import MAX_RECORDS, DisruptionRecord, Operation, PodUnavailableBudgetStatus
from altershield.budgets.pods import Pod
from altershield.budgets.records import (
    CLOCK_ERROR,
    FRESH,
    HOLD,
    Settled,
    ended_by_break_glass,
    is_fresh,
    is_full,
    settled,
    without_record,
)
from kube_base.times import rfc3339
from tests.unit.altershield.budgets.builders import NOW, pod

RECORD = DisruptionRecord("web-0", Operation.DELETE, rfc3339(NOW))
STATUS = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": RECORD}, pods_resource_version="5")
RUN_OUT = NOW + HOLD + CLOCK_ERROR


def settled_at(now: float, *, seen: int = 5, live: dict[str, Pod | None] | None = None) -> Settled:
    """The cache has the pod, which serves."""
    return settled(STATUS, find=lambda _: pod("web-0"), covered=lambda _: True, seen=seen, now=now, live=live or {})


def test_status_is_full_with_the_records_of_both_kinds() -> None:
    some = {f"uid-{number}": RECORD for number in range(MAX_RECORDS - 1)}
    status = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": RECORD}, unavailable_pods=some)
    assert is_full(status)
    assert not is_full(msgspec.structs.replace(status, disrupted_pods={}))


def test_record_is_fresh_for_a_second() -> None:
    assert is_fresh(RECORD, NOW + FRESH)
    assert not is_fresh(RECORD, NOW + FRESH + 0.1)


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.UPDATE])
def test_record_is_taken_out_without_the_others(operation: Operation) -> None:
    both = {"uid-web-0": RECORD, "uid-web-1": RECORD}
    status = PodUnavailableBudgetStatus(disrupted_pods=both, unavailable_pods=both)
    found = without_record(status, "uid-web-0", operation)
    kept = found.disrupted_pods if operation == Operation.DELETE else found.unavailable_pods
    assert list(kept) == ["uid-web-1"]
    assert len(found.disrupted_pods) + len(found.unavailable_pods) == 3


def test_pod_is_read_live_once_its_record_has_run_out_and_not_before() -> None:
    assert settled_at(RUN_OUT).unread == ()
    assert settled_at(RUN_OUT + 0.1).unread == ("web-0",)


def test_record_that_ran_out_is_dropped_with_the_version_of_the_pod_that_was_read() -> None:
    found = settled_at(RUN_OUT + 1, live={"web-0": pod("web-0", version=9)})
    assert (found.disrupted_pods, found.pods_resource_version) == ({}, "9")


@pytest.mark.parametrize("live", [None, pod("web-0", uid="other"), pod("web-0", deleting=True)])
def test_record_that_ran_out_is_held_if_its_pod_is_gone_and_the_cache_does_not_know_it(live: Pod | None) -> None:
    found = settled_at(RUN_OUT + 1, live={"web-0": live})
    assert list(found.disrupted_pods) == ["uid-web-0"]
    assert found.unread == ()


def test_only_records_of_break_glass_are_reported_when_they_end() -> None:
    by_glass = DisruptionRecord("web-1", Operation.UPDATE, rfc3339(NOW), "ann", break_glass=True)
    before = PodUnavailableBudgetStatus(
        disrupted_pods={"a": RECORD, "b": by_glass}, unavailable_pods={"c": RECORD, "d": by_glass}
    )
    after = PodUnavailableBudgetStatus(disrupted_pods={"b": by_glass})
    assert ended_by_break_glass(before, after) == (by_glass,)
