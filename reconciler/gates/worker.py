"""Works out the times of ReleaseWindows in a process of its own, whose CPU time and memory are limited.

    python -m reconciler.gates.worker

It reads Requests in JSON from its standard input, one a line, and writes an Answer in JSON to its standard output for
each, one a line. A calendar may take much time and memory, whatever is checked before. So the reconciler, which has to
answer and to verify releases meanwhile, does not do this work itself. A request with a calendar gets a process of its
own, because libraries keep what they have read, and one calendar must not change what another one means.
"""

import math
import os
import resource
import signal
import sys
import time
import zoneinfo
from typing import NoReturn

import msgspec

from reconciler.gates.problems import OutOfTimeError, Problem, Reason, ScheduleError
from reconciler.gates.question import Answer, Request

CPU_SECONDS = 5
"""The limit of CPU time. A large calendar of a real company takes less than a second."""

MEMORY = 96 * 2**20
"""The limit of the address space, in bytes. The process begins with a quarter of it, as much as the largest calendar
needs that is no attack. It is far below the memory limit of the container."""

_NICE = 10
"""The weight is a tenth of that of the reconciler. With 19, a busy reconciler would leave the worker a hundredth."""

_KILLED_AFTER = 2  # further seconds of CPU time
_LARGE_CALENDARS = "the calendars need too much memory; remove events that are past"
_LARGE_SCHEDULES = "the schedules need too much memory; write fewer or simpler ones"


def answer(request: Request) -> Answer:
    """The answer to a request. OutOfTimeError: the limit of CPU time is reached."""
    try:
        from reconciler.gates import schedules, times  # here, so that the limits are set before libraries are loaded

        spans = schedules.intervals(request.spec, request.texts, request.begin, request.end)
    except ScheduleError as error:
        return Answer(problem=error.problem)
    except MemoryError:
        if request.texts:
            return Answer(problem=Problem(Reason.CALENDAR_INVALID, _LARGE_CALENDARS))
        return Answer(problem=Problem(Reason.SCHEDULE_INVALID, _LARGE_SCHEDULES))
    return Answer(times=times.bounded(spans, request.end))


def main() -> None:
    """Answer the requests."""
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXCPU, _out_of_time)
    zoneinfo.reset_tzpath(())  # the time zones of the package tzdata, whatever the machine has
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Request)
        _limit(is_last=bool(request.texts))
        sys.stdout.buffer.write(msgspec.json.encode(_within_time(request)) + b"\n")
        sys.stdout.buffer.flush()


def _limit(*, is_last: bool) -> None:
    """Limit the CPU time of the next request. A hard limit cannot be raised, so only the last request has one."""
    seconds = math.ceil(time.process_time()) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _KILLED_AFTER if is_last else resource.RLIM_INFINITY))


def _within_time(request: Request) -> Answer:
    try:
        return answer(request)
    except OutOfTimeError:
        reason = Reason.CALENDAR_INVALID if request.texts else Reason.SCHEDULE_INVALID
        message = "the schedules take too long to work out; write fewer or simpler ones, or remove past events"
        return Answer(problem=Problem(reason, message))


def _out_of_time(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it comes again each second
    raise OutOfTimeError


if __name__ == "__main__":
    main()
