"""The status of a ReleaseWindow: what is accepted, what stays in force, and how seldom it is written."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from altershield.api import labels
from altershield.api.gates.windows import WindowType
from reconciler.gates.terms import DAY
from tests.unit.reconciler.filled import empty_caches, namespace, put

from .specs import FROM_FILE, at, calendar, spec
from .world import NOW, SYSTEM, World

WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}
MONDAY = {"weekly": {"days": ["Mon"]}}
WRONG = {"cron": {"schedule": "61 0 * * *", "durationSeconds": 60}}
DENSE = {"cron": {"schedule": "*/30 * * * *", "durationSeconds": 60}}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with empty_caches() as caches:
        put(caches, namespace("shop"))
        yield World(caches, "shop")


@pytest.fixture
async def system(world: World) -> World:
    """A window in AlterShield's namespace, where calendars are read."""
    world.where = SYSTEM
    return world


async def test_window_that_is_accepted_has_its_times_and_wakes_at_the_next_edge(world: World) -> None:
    delay = await world.apply(spec(WEEKEND))
    assert (world.accepted.status, world.accepted.reason, world.accepted.observed_generation) == ("True", "Valid", 1)
    status = world.status
    assert (status.open, status.next_transition_time) == (True, "2026-11-28T00:00:00Z")
    assert status.computed_until == "2027-01-01T12:00:00Z"
    assert world.intervals[0] == ("2026-11-28T00:00:00Z", "2026-11-30T00:00:00Z")
    assert len(world.intervals) == 5
    assert (status.accepted, status.accepted_generation, status.observed_generation) == (spec(WEEKEND), 1, 1)
    assert delay == DAY / 2
    assert world.events == []


async def test_status_is_written_only_at_the_edges_and_before_the_times_run_out(world: World) -> None:
    await world.apply(spec(WEEKEND))
    written = []
    delay: float | None = await world.reconcile()
    while world.now < NOW + 8 * DAY and delay is not None:
        before = world.writes
        world.now += delay
        delay = await world.reconcile()
        written.append((int(world.now - NOW) / DAY, world.writes - before, len(world.requests)))
    assert written == [(0.5, 1, 1), (2.5, 1, 1), (7.0, 1, 2), (7.5, 1, 2), (9.5, 1, 2)]
    assert world.status.computed_until == "2027-01-08T12:00:00Z"


async def test_window_opens_and_closes(world: World) -> None:
    allow = msgspec.structs.replace(spec(WEEKEND), type=WindowType.ALLOW)
    for new, outside in ((spec(WEEKEND), True), (allow, False)):
        world.now = float(NOW)
        await world.apply(new)
        assert world.status.open is outside
        world.now = float(at("2026-11-28 00:00"))
        await world.reconcile()
        assert (world.status.open, world.status.next_transition_time) == (not outside, "2026-11-30T00:00:00Z")


async def test_status_says_what_the_gate_says(world: World) -> None:
    """An Allow that has to stay open for an hour closes an hour before its end."""
    allow = msgspec.structs.replace(spec(WEEKEND), type=WindowType.ALLOW, min_remaining_seconds=3600)
    world.now = float(at("2026-11-28 00:00"))
    await world.apply(allow)
    assert (world.status.open, world.status.next_transition_time) == (True, "2026-11-29T23:00:00Z")
    world.now = float(at("2026-11-29 23:00"))
    await world.reconcile()
    assert (world.status.open, world.status.next_transition_time) == (False, "2026-12-05T00:00:00Z")


async def test_end_that_lies_beyond_the_times_is_no_transition(world: World) -> None:
    await world.apply(spec({"dates": {"from": "2026-11-01", "to": "2027-12-31"}}))
    assert (world.status.open, world.status.next_transition_time) == (False, "")
    assert world.intervals == [("2026-11-01T00:00:00Z", "2028-01-01T00:00:00Z")]


async def test_new_process_works_the_times_out_and_writes_nothing(world: World) -> None:
    await world.apply(spec(WEEKEND))
    world.start()
    world.now += 3600
    assert await world.reconcile() == DAY / 2 - 3600
    assert (world.writes, len(world.requests)) == (1, 2)


async def test_wrong_edit_leaves_the_accepted_spec_in_force(world: World) -> None:
    await world.apply(spec(WEEKEND))
    before = world.intervals
    await world.apply(spec(WRONG))
    assert (world.accepted.status, world.accepted.reason, world.accepted.observed_generation) == (
        *("False", "ScheduleInvalid"),
        2,
    )
    assert world.accepted.message.startswith("spec.schedules[0]: cron: '61 0 * * *' is not a cron schedule: Bad minute")
    assert world.accepted.message.endswith("; the spec that was accepted last stays in force")
    assert (world.intervals, world.status.accepted, world.status.accepted_generation) == (before, spec(WEEKEND), 1)
    assert world.status.observed_generation == 2
    world.now += 7 * DAY
    await world.reconcile()
    assert world.status.computed_until == "2027-01-08T12:00:00Z"
    assert world.accepted.reason == "ScheduleInvalid"
    await world.apply(spec(MONDAY))
    assert (world.accepted.status, world.status.accepted, world.status.accepted_generation) == (
        *("True", spec(MONDAY)),
        3,
    )
    assert [reason for reason, _ in world.events] == ["Warning WindowRejected", "Normal WindowAccepted"]


async def test_wrong_new_window_is_not_in_force(world: World) -> None:
    deny, allow = spec(WRONG), msgspec.structs.replace(spec(WRONG), type=WindowType.ALLOW)
    assert await world.apply(deny) is None
    assert world.accepted.message.endswith("; no spec is in force")
    assert (world.status.open, world.status.accepted, world.intervals) == (True, None, [])
    await world.apply(allow)
    assert world.status.open is False
    requests = len(world.requests)
    await world.reconcile()
    assert len(world.requests) == requests, "what is wrong is not worked out again"


async def test_too_many_times_for_a_week_are_not_accepted(world: World) -> None:
    await world.apply(spec(DENSE))
    assert (world.accepted.reason, world.status.accepted) == ("TooManyIntervals", None)
    assert world.accepted.message.startswith("the schedules have more than 200 separate times in the next 7 days")


async def test_many_times_reach_less_far_and_are_worked_out_as_they_pass(world: World) -> None:
    hourly = {"cron": {"schedule": "0 * * * *", "durationSeconds": 60}}
    await world.apply(spec(hourly))
    assert world.accepted.is_true
    assert (len(world.intervals), world.status.computed_until) == (200, "2026-12-05T20:00:00Z")
    for _ in range(120):
        delay = await world.reconcile()
        assert delay is not None
        world.now += delay
    assert len(world.requests) == 2
    assert world.status.computed_until == "2026-12-07T22:00:00Z"


async def test_selector_of_namespaces_is_for_the_system_namespace(world: World) -> None:
    everywhere = spec(WEEKEND, namespaceSelector={})
    await world.apply(everywhere)
    assert world.accepted.reason == "NamespaceSelectorNotAllowed"
    assert world.accepted.message.startswith(
        f"spec.namespaceSelector is for windows of AlterShield's namespace, {SYSTEM}"
    )
    world.where = SYSTEM
    await world.apply(everywhere)
    assert world.accepted.is_true


async def test_calendar_outside_of_the_system_namespace_is_not_read(world: World) -> None:
    await world.apply(spec(FROM_FILE))
    assert (world.accepted.reason, world.requests) == ("CalendarNotFound", [])
    assert f"AlterShield may read calendars only in its own namespace, {SYSTEM}" in world.accepted.message


async def test_calendar_is_followed(system: World) -> None:
    await system.apply(spec(FROM_FILE))
    assert system.accepted.reason == "CalendarNotFound"
    assert f"no ConfigMap holidays with the label {labels.CALENDAR}" in system.accepted.message
    system.publish(calendar("DTSTART;VALUE=DATE:20261224"))
    await system.reconcile()
    assert system.accepted.is_true
    assert system.intervals == [("2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z")]
    writes = system.writes
    system.publish(calendar("DTSTART;VALUE=DATE:20261224", "DTSTART;VALUE=DATE:20271224"), 2)
    await system.reconcile()
    assert system.writes == writes, "this changes nothing within reach"
    system.publish(calendar("DTSTART;VALUE=DATE:20261223"), 3)
    await system.reconcile()
    assert system.intervals == [("2026-12-23T00:00:00Z", "2026-12-24T00:00:00Z")]


async def test_wrong_calendar_leaves_the_times_in_force(system: World) -> None:
    system.publish(calendar("DTSTART;VALUE=DATE:20261224"))
    await system.apply(spec(FROM_FILE))
    before = system.intervals
    system.publish(calendar("DTSTART;VALUE=DATE:20261301"), 2)
    await system.reconcile()
    assert (system.accepted.reason, system.intervals) == ("CalendarInvalid", before)
    assert "event 1 (UID 0): '20261301' is neither a date nor a time" in system.accepted.message
    assert system.status.accepted == spec(FROM_FILE)
    requests, writes = len(system.requests), system.writes
    system.now += 8 * DAY
    assert await system.reconcile() == at("2026-12-24 00:00") - system.now
    assert (len(system.requests), system.writes) == (requests, writes)
    system.publish(calendar("DTSTART;VALUE=DATE:20261224"), 3)
    await system.reconcile()
    assert system.accepted.is_true
    assert [reason for reason, _ in system.events] == ["Warning WindowRejected", "Normal WindowAccepted"]


async def test_key_that_the_calendar_lacks_is_named(system: World) -> None:
    system.publish(calendar())
    await system.apply(spec({"calendar": {"configMap": "holidays", "key": "de.ics"}}))
    assert system.accepted.message.startswith("the ConfigMap holidays has no key de.ics")


async def test_worker_that_was_stopped_is_asked_again(world: World) -> None:
    world.stopped = True
    assert await world.apply(spec(WEEKEND)) == 60
    assert world.accepted.message == (
        "the times could not be worked out, which is tried again: the worker was stopped; no spec is in force"
    )
    world.stopped = False
    assert (await world.reconcile() or 0) > 60
    assert world.accepted.is_true


async def test_worker_that_was_stopped_leaves_times_that_are_fresh(world: World) -> None:
    await world.apply(spec(WEEKEND))
    world.start()
    world.stopped = True
    assert await world.reconcile() == 60
    assert (world.accepted.is_true, world.writes) == (True, 1)


async def test_deleted_window_is_forgotten(world: World) -> None:
    assert await world.reconcile() is None
