"""Several gatekeepers and reconcilers never admit more disruptions than a budget allows, and give each slot back."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.budgets import decision, records
from tests.unit.altershield.budgets.model import Cures, Model, ViolationError, walk

Mutation = Callable[[ExitStack], Cures | None]


@given(st.lists(st.integers(0, 2**16), min_size=1, max_size=200))
@settings(max_examples=150, deadline=None)
def test_budget_is_kept_and_slots_come_back_in_any_order_of_events(numbers: list[int]) -> None:
    source = iter(numbers)
    model = Model(lambda count: next(source, 0) % count)
    for _ in range(len(numbers) // 2):
        model.act()
    model.finish()


def test_budget_is_kept_and_slots_come_back_in_random_walks() -> None:
    for seed in range(800):
        walk(seed)


def patched(stack: ExitStack, module: Any, name: str, value: Any) -> None:
    stack.enter_context(patch.object(module, name, value))


def no_versions_compared(stack: ExitStack) -> Cures:
    return Cures(compares_versions=False)


def conflict_is_merged(stack: ExitStack) -> Cures:
    return Cures(decides_again=False)


def answer_before_write(stack: ExitStack) -> Cures:
    return Cures(answers_after_writing=False)


def gatekeeper_decides_on_old_pods(stack: ExitStack) -> None:
    patched(stack, decision, "version_number", lambda version: 0)


def leader_does_not_write_what_it_saw(stack: ExitStack) -> None:
    settled = records.settled

    def changed(status: Any, **known: Any) -> Any:
        return settled(status, **known)._replace(pods_resource_version=status.pods_resource_version)

    patched(stack, records, "settled", changed)


def leader_settles_on_old_pods(stack: ExitStack) -> None:
    patched(stack, records, "version_number", lambda version: 0)


def gatekeeper_does_not_write_what_it_saw(stack: ExitStack) -> None:
    with_record = decision.with_record

    def changed(status: Any, *about: Any) -> Any:
        found = with_record(status, *about)
        return msgspec.structs.replace(found, pods_resource_version=status.pods_resource_version)

    patched(stack, decision, "with_record", changed)


def pods_that_are_not_available_go_without_a_record(stack: ExitStack) -> None:
    judge = decision._judge

    def changed(found: Any, operation: Any, disruption: Any, pod: Any, *about: Any, **fields: Any) -> Any:
        if not pod.available:
            return decision._ADMITTED
        return judge(found, operation, disruption, pod, *about, **fields)

    patched(stack, decision, "_judge", changed)


def record_is_held_too_short(stack: ExitStack) -> None:
    patched(stack, records, "HOLD", 20.0)


def clocks_are_taken_for_exact(stack: ExitStack) -> None:
    patched(stack, records, "CLOCK_ERROR", 0.0)


def pod_is_not_read_before_its_record_is_dropped(stack: ExitStack) -> None:
    settled = records.settled

    def changed(status: Any, **known: Any) -> Any:
        names = [each.name for each in (*status.disrupted_pods.values(), *status.unavailable_pods.values())]
        return settled(status, **{**known, "live": {name: known["find"](name) for name in names}})

    patched(stack, records, "settled", changed)


def repeated_request_passes_on_an_old_record(stack: ExitStack) -> None:
    patched(stack, decision, "is_fresh", lambda record, now: True)


def ready_pod_shows_its_change(stack: ExitStack) -> None:
    patched(stack, records, "shown", lambda record, pod, *, covered: bool(record.shows) and pod.ready)


def record_of_a_deletion_stays(stack: ExitStack) -> None:
    patched(stack, records, "HOLD", 1e9)


def record_of_an_update_stays(stack: ExitStack) -> None:
    patched(stack, records, "IN_PLACE_HOLD", 1e9)


def admitted(request: int, gatekeeper: int, pod: str, operation: str = "DELETE") -> tuple[str, ...]:
    goes_on = (f"request {request} goes on",) * 6
    return (f"gatekeeper {gatekeeper} is asked to {operation} {pod}", *goes_on)


def deleted(request: int, gatekeeper: int, pod: str) -> tuple[str, ...]:
    return (*admitted(request, gatekeeper, pod), f"request {request} takes effect")


def again(pod: str) -> tuple[str, ...]:
    return f"{pod} is gone", f"{pod} is created", f"{pod} is ready"


def settles(leader: int) -> tuple[str, ...]:
    """Several times, because the first time may ask for a live read."""
    return (f"leader {leader} sees the budget", *(f"leader {leader} settles", f"leader {leader} writes") * 3)


RACE = (
    "gatekeeper 0 is asked to DELETE web-0", "gatekeeper 1 is asked to DELETE web-1",
    *("request 1 goes on", "request 2 goes on") * 3, "request 1 takes effect", "request 2 takes effect",
)  # fmt: skip
OLD_GATEKEEPER = (
    *deleted(1, 0, "web-0"), "leader 0 sees all events", *settles(0),
    "gatekeeper 1 sees the budget", *deleted(2, 1, "web-1"),
)  # fmt: skip
SECOND_LIFE = (*deleted(1, 0, "web-0"), *again("web-0"), "gatekeeper 0 sees all events", "gatekeeper 1 sees all events")
OLD_LEADER = (
    *SECOND_LIFE, "leader 0 sees all events", *settles(0), "gatekeeper 0 sees the budget", *admitted(2, 0, "web-0"),
    *settles(1), "gatekeeper 1 sees the budget", *deleted(3, 1, "web-1"), "request 2 takes effect",
)  # fmt: skip
UNSEEN_POD = (
    *SECOND_LIFE, "2 s pass", *admitted(2, 0, "web-0"),
    *settles(1), "gatekeeper 1 sees the budget", *deleted(3, 1, "web-1"), "request 2 takes effect",
)  # fmt: skip
SLOW_REQUEST = (
    *admitted(1, 0, "web-0"), "33 s pass", *settles(0),
    "gatekeeper 1 sees the budget", *deleted(2, 1, "web-1"), "request 1 takes effect",
)  # fmt: skip
HANGING_WATCH = (
    *deleted(1, 0, "web-0"), "60 s pass", *settles(0), "gatekeeper 1 sees the budget", *deleted(2, 1, "web-1"),
)  # fmt: skip
LATE_REPETITION = (
    *admitted(1, 0, "web-0"), "35 s pass", "gatekeeper 1 sees the budget", *admitted(2, 1, "web-0"), "16 s pass",
    *settles(0), "gatekeeper 0 sees the budget", *deleted(3, 0, "web-1"), "request 2 takes effect",
)  # fmt: skip
SLOW_KUBELET = (
    *admitted(1, 0, "web-0", "UPDATE"), "request 1 takes effect", "leader 0 sees all events", *settles(0),
    "gatekeeper 1 sees all events", "gatekeeper 1 sees the budget", *deleted(2, 1, "web-1"),
    "web-0 stops its container",
)  # fmt: skip
READY_TOO_LATE = (
    *deleted(1, 0, "web-0"), "web-0 is gone", "web-0 is created", "gatekeeper 0 sees all events",
    *admitted(2, 0, "web-0"), "web-0 is ready", "leader 0 sees all events", *settles(0),
    "gatekeeper 1 sees all events", "gatekeeper 1 sees the budget", *deleted(3, 1, "web-1"), "request 2 takes effect",
)  # fmt: skip
REFUSED_LATER = (*admitted(1, 0, "web-0"), "request 1 is killed")
UPDATE_REFUSED_LATER = (*admitted(1, 0, "web-0", "UPDATE"), "request 1 is killed")

HAZARDS: list[tuple[Mutation, tuple[str, ...]]] = [
    (no_versions_compared, RACE),
    (conflict_is_merged, RACE),
    (answer_before_write, RACE),
    (gatekeeper_decides_on_old_pods, OLD_GATEKEEPER),
    (leader_does_not_write_what_it_saw, OLD_GATEKEEPER),
    (leader_settles_on_old_pods, OLD_LEADER),
    (gatekeeper_does_not_write_what_it_saw, UNSEEN_POD),
    (pods_that_are_not_available_go_without_a_record, READY_TOO_LATE),
    (record_is_held_too_short, SLOW_REQUEST),
    (clocks_are_taken_for_exact, SLOW_REQUEST),
    (pod_is_not_read_before_its_record_is_dropped, HANGING_WATCH),
    (repeated_request_passes_on_an_old_record, LATE_REPETITION),
    (ready_pod_shows_its_change, SLOW_KUBELET),
    (record_of_a_deletion_stays, REFUSED_LATER),
    (record_of_an_update_stays, UPDATE_REFUSED_LATER),
]


def played(events: tuple[str, ...], cures: Cures | None = None) -> None:
    model = Model(lambda count: 0, cures)
    model.play(*events)
    model.finish()


@pytest.mark.parametrize(("mutation", "events"), HAZARDS, ids=[each.__name__ for each, _ in HAZARDS])
def test_model_finds_each_hazard_when_its_cure_is_taken_out(mutation: Mutation, events: tuple[str, ...]) -> None:
    played(events)
    with ExitStack() as stack:
        cures = mutation(stack)
        with pytest.raises(ViolationError):
            played(events, cures)


def test_doubled_and_repeated_requests_for_one_pod_take_one_slot() -> None:
    model = Model(lambda count: 0)
    model.play(*admitted(1, 0, "web-0"), *admitted(2, 1, "web-0"), "16 s pass", *admitted(3, 0, "web-0"))
    assert [request.admitted for request in model.requests] == [True, True, True]
    assert len(model.budgets[-1].status.disrupted_pods) == 1
