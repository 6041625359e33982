"""The worker: its answers are those of the pure function, and no calendar can make it run on or grow."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest

from reconciler.gates import expansion
from reconciler.gates.expansion import Expansion, StoppedError
from reconciler.gates.problems import Problem, Reason
from reconciler.gates.question import Request
from reconciler.gates.schedules import intervals
from reconciler.gates.times import REACH, Times

from .specs import FILE, FROM_FILE, at, calendar, spec

NOW = at("2026-11-28 12:00")
WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}
SLOW = "DTSTART:19000101T000000Z DURATION:PT1H RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"
"""A rule that never comes, which dateutil notices in the year 9999."""


def limited(**limits: int) -> Expansion:
    """With a worker of lower limits, for the tests' sake."""
    lower = "; ".join(f"worker.{name} = {number}" for name, number in limits.items())
    return Expansion((sys.executable, "-c", f"from reconciler.gates import worker; {lower}; worker.main()"))


async def ask(text: str, expand: Expansion) -> Times | Problem:
    """The answer to a window with this calendar."""
    return await expand(Request(spec(FROM_FILE), {FILE: text}, NOW, NOW + REACH), "shop")


async def test_worker_answers_with_the_times() -> None:
    window, texts = spec(WEEKEND, FROM_FILE, zone="Asia/Shanghai"), {FILE: calendar("DTSTART;VALUE=DATE:20261225")}
    found = await Expansion()(Request(window, texts, NOW, NOW + REACH), "shop")
    assert found == Times(tuple(intervals(window, texts, NOW, NOW + REACH)), NOW + REACH)


async def test_worker_answers_why_there_are_none() -> None:
    found = await ask("x", Expansion())
    assert isinstance(found, Problem)
    assert found.reason == "CalendarInvalid"
    assert found.message.startswith("spec.schedules[0]: the file has no VCALENDAR")


async def test_more_than_200_times_are_cut_where_the_next_one_begins() -> None:
    cron = {"cron": {"schedule": "0 * * * *", "durationSeconds": 60}}
    found = await Expansion()(Request(spec(cron), {}, NOW, NOW + REACH), "shop")
    assert isinstance(found, Times)
    assert (len(found.spans), found.until) == (200, NOW + 200 * 3600)


async def test_calendar_that_takes_long_is_refused_with_the_event() -> None:
    found = await ask(calendar(*[SLOW] * 500), limited(CPU_SECONDS=1))
    assert isinstance(found, Problem)
    assert found.reason == "CalendarInvalid"
    assert "it takes too long to work out; remove events that are past" in found.message
    assert found.message.startswith("spec.schedules[0]: event ")


async def test_schedules_that_take_long_are_refused() -> None:
    crons = [{"cron": {"schedule": f"*/1 * * * {day}", "durationSeconds": 2678400}} for day in ["*"] * 16]
    found = await limited(CPU_SECONDS=1)(Request(spec(*crons), {}, NOW, NOW + 4000 * REACH), "shop")
    assert isinstance(found, Problem)
    assert (found.reason, "take too long" in found.message) == ("ScheduleInvalid", True)


async def test_calendar_that_needs_much_memory_is_refused() -> None:
    daily = "DTSTART:19000101T000000Z DURATION:P36500D RRULE:FREQ=DAILY"
    found = await ask(calendar(*[daily] * 100), limited(MEMORY=32 * 2**20, CPU_SECONDS=60))
    assert isinstance(found, Problem)
    assert (found.reason, "need too much memory" in found.message) == ("CalendarInvalid", True)


async def test_schedules_that_need_much_memory_are_refused_without_a_word_about_calendars() -> None:
    crons = [{"cron": {"schedule": "* * * * *", "durationSeconds": 60 + each}} for each in range(16)]
    found = await limited(MEMORY=32 * 2**20, CPU_SECONDS=60)(Request(spec(*crons), {}, NOW, NOW + REACH), "shop")
    assert found == Problem(Reason.SCHEDULE_INVALID, "the schedules need too much memory; write fewer or simpler ones")


async def test_slow_calendar_does_not_delay_a_window_without_one() -> None:
    expand = limited(CPU_SECONDS=1)
    slow = asyncio.create_task(
        expand(Request(spec(FROM_FILE), {FILE: calendar(*[SLOW] * 500)}, NOW, NOW + REACH), "shop")
    )
    found = await expand(Request(spec(WEEKEND), {}, NOW, NOW + REACH), "shop")
    assert isinstance(found, Times)
    assert not slow.done()
    assert isinstance(await slow, Problem)


def counted(starts: Path, **limits: int) -> Expansion:
    """With a worker that adds a letter to a file when it starts."""
    lower = "; ".join(f"worker.{name} = {number}" for name, number in limits.items()) or "pass"
    code = f"from reconciler.gates import worker; {lower}; open({str(starts)!r}, 'a').write('x'); worker.main()"
    return Expansion((sys.executable, "-c", code))


async def test_requests_without_calendars_that_wait_share_a_worker(tmp_path: Path) -> None:
    expand = counted(tmp_path / "starts")
    windows = [spec(WEEKEND, zone=zone) for zone in ("Asia/Shanghai", "UTC", "Europe/Berlin", "UTC")]
    requests = [Request(window, {}, NOW, NOW + REACH) for window in windows]
    found = await asyncio.gather(*(expand(each, namespace) for each in requests for namespace in ("shop", "bank")))
    assert found == [
        Times(tuple(intervals(each.spec, {}, NOW, NOW + REACH)), NOW + REACH) for each in requests for _ in range(2)
    ]
    assert (tmp_path / "starts").read_text() == "x"
    assert expand._plain is None, "no worker stays"
    await expand(requests[0], "shop")
    assert (tmp_path / "starts").read_text() == "xx"


async def test_each_calendar_gets_a_worker_of_its_own(tmp_path: Path) -> None:
    expand = counted(tmp_path / "starts")
    text = calendar("DTSTART;VALUE=DATE:20261225")
    await asyncio.gather(*(ask(text, expand) for _ in range(3)))
    assert (tmp_path / "starts").read_text() == "xxx"


async def test_the_bounds_are_for_each_request_and_no_worker_goes_on_after_a_problem(tmp_path: Path) -> None:
    expand = counted(tmp_path / "starts", CPU_SECONDS=1)
    crons = [{"cron": {"schedule": f"*/1 * * * {day}", "durationSeconds": 2678400}} for day in ["*"] * 16]
    slow = Request(spec(*crons), {}, NOW, NOW + 4000 * REACH)
    fast = Request(spec(WEEKEND), {}, NOW, NOW + REACH)
    found = await asyncio.gather(*(expand(each, "shop") for each in (fast, slow, fast, slow)))
    assert [type(each) for each in found] == [Times, Problem, Times, Problem]
    assert (tmp_path / "starts").read_text() == "xx"


async def test_namespaces_take_turns() -> None:
    expand, order = Expansion((sys.executable, "-c", "raise SystemExit(3)")), []

    async def work(namespace: str, number: int) -> None:
        with contextlib.suppress(StoppedError):
            await expand(Request(spec(WEEKEND), {}, NOW, NOW + REACH), namespace)
        order.append((namespace, number))

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(work("busy", number))
        group.create_task(work("shop", 0))
    assert order == [("busy", 0), ("shop", 0), ("busy", 1), ("busy", 2)]


async def test_worker_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(expansion, "_SECONDS", 0.5)
    pid = tmp_path / "pid"
    code = f"import os, signal; open({str(pid)!r}, 'w').write(str(os.getpid())); signal.pause()"
    with pytest.raises(StoppedError, match="did not answer within"):
        await Expansion((sys.executable, "-c", code))(Request(spec(WEEKEND), {}, NOW, NOW + REACH), "shop")
    if pid.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


async def test_worker_that_ends_without_an_answer_is_an_error() -> None:
    with pytest.raises(StoppedError, match="ended with exit code 3 and no answer"):
        await Expansion((sys.executable, "-c", "raise SystemExit(3)"))(
            Request(spec(WEEKEND), {}, NOW, NOW + REACH), "shop"
        )


async def test_worker_does_not_outlive_the_reconcile(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    code = f"import os, signal; open({str(fifo)!r}, 'w').write(str(os.getpid())); signal.pause()"
    expand = Expansion((sys.executable, "-c", code))
    task = asyncio.create_task(expand(Request(spec(WEEKEND), {}, NOW, NOW + REACH), "shop"))
    pid = int(await asyncio.to_thread(fifo.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_worker_gets_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALTERSHIELD_SECRET_TOKEN", "secret")
    code = "import os, sys; sys.exit(7 if 'ALTERSHIELD_SECRET_TOKEN' in os.environ else 8)"
    with pytest.raises(StoppedError, match="exit code 8"):
        await Expansion((sys.executable, "-c", code))(Request(spec(WEEKEND), {}, NOW, NOW + REACH), "shop")
