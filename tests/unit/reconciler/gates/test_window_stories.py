"""Random stories of a ReleaseWindow: edits, calendars, time that passes, processes that start."""

import asyncio
from typing import Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.windows import ReleaseWindowSpec, WindowType
from kube_base.times import unix
from reconciler.gates import schedules, times
from reconciler.gates.problems import ScheduleError
from reconciler.gates.terms import DAY
from reconciler.gates.times import Times
from tests.unit.reconciler.filled import empty_caches

from .specs import FILE, FROM_FILE, calendar, spec
from .world import SYSTEM, World

WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}
NIGHTS = {"weekly": {"days": ["Mon", "Tue", "Wed", "Thu", "Fri"], "from": "20:00", "to": "08:00"}}
SPECS = (
    spec(WEEKEND, zone="Asia/Shanghai"),
    spec(FROM_FILE),
    spec(NIGHTS, FROM_FILE, zone="Europe/Berlin"),
    spec({"cron": {"schedule": "61 * * * *", "durationSeconds": 60}}),
    spec(
        {"dates": {"from": "2026-12-01", "to": "2026-12-20"}},
        {"cron": {"schedule": "0 6 * * 1", "durationSeconds": 900}},
    ),
)
TEXTS = (
    calendar("DTSTART;VALUE=DATE:20261201 RRULE:FREQ=WEEKLY"),
    calendar("DTSTART;TZID=Europe/Berlin:20261103T080000 DURATION:PT30H RRULE:FREQ=MONTHLY"),
    calendar(),
    "BEGIN:VCALENDAR",
)

Step = tuple[Literal["edit", "publish", "pass", "start"], int]
steps = st.lists(
    st.tuples(st.sampled_from(["edit", "publish", "pass", "start"]), st.integers(0, 1000)), min_size=1, max_size=12
)


class Model:
    """What has to be in force: an obvious copy of the rules."""

    def __init__(self) -> None:
        self.spec: ReleaseWindowSpec | None = None
        self.in_force: tuple[ReleaseWindowSpec, dict[str, str]] | None = None
        self.texts: dict[str, str] = {}
        self.works = False
        """Whether the spec in force works with the present calendar, so that its times are extended."""

    def look(self) -> bool:
        """The reconciler looks at the spec and the calendar. Whether the spec is accepted."""
        if self.spec is not None and self._works(self.spec):
            self.in_force, self.works = (self.spec, dict(self.texts)), True
            return True
        self.works = self.in_force is not None and self._works(self.in_force[0])
        if self.in_force is not None and self.works:
            self.in_force = self.in_force[0], dict(self.texts)
        return False

    def _works(self, own: ReleaseWindowSpec) -> bool:
        try:
            schedules.intervals(own, self.texts, 0, DAY)
        except (ScheduleError, KeyError):
            return False
        return True

    def is_open(self, now: int) -> bool:
        assert self.in_force is not None
        own, texts = self.in_force
        inside = bool(schedules.intervals(own, texts, now, now + 1))
        return inside == (own.type is WindowType.ALLOW)


@given(steps, st.booleans())
def test_status_is_right_after_any_story(story: list[Step], allow: bool) -> None:
    asyncio.run(_told(story, WindowType.ALLOW if allow else WindowType.DENY))


async def _told(story: list[Step], type_: WindowType) -> None:
    async with empty_caches() as caches:
        world, model, version = World(caches, SYSTEM), Model(), 0
        for what, number in story:
            match what:
                case "edit":
                    model.spec = msgspec.structs.replace(SPECS[number % len(SPECS)], type=type_)
                    await world.apply(model.spec)
                case "publish":
                    version += 1
                    model.texts = {FILE: TEXTS[number % len(TEXTS)]}
                    world.publish(model.texts[FILE], version)
                case "start":
                    world.start()
                case "pass":
                    await _pass(world, number * 3600.0)
            if model.spec is not None:
                await world.reconcile()
                _check(world, model)
                writes = world.writes
                await world.reconcile()
                assert world.writes == writes, "the second look changes nothing"


async def _pass(world: World, seconds: float) -> None:
    """Time passes. The queue reconciles the window when it asked for it."""
    end = world.now + seconds
    while (delay := await world.reconcile()) is not None and world.now + delay <= end:
        world.now += delay
    world.now = end


def _check(world: World, model: Model) -> None:
    accepted = model.look()
    assert world.accepted.is_true is accepted, world.accepted
    if model.in_force is None:
        assert world.status.accepted is None
        return
    assert world.status.accepted == model.in_force[0]
    now, until = int(world.now), int(unix(world.status.computed_until))
    if now < until:  # a calendar may be wrong for longer than the times reach
        assert world.status.open is model.is_open(now), (world.status, now)
        expected = Times(tuple(schedules.intervals(*model.in_force, now, until)), until)
        assert times.agree(times.of(world.status), expected, now), (world.status, expected)
    assert not model.works or until - now >= 28 * DAY
