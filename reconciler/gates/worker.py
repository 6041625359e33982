"""Works out the times of one ReleaseWindow in a process of its own, whose CPU time and memory are limited.

    python -m reconciler.gates.worker

It reads a Request in JSON from its standard input, and writes an Answer in JSON to its standard output. A calendar may
take much time and memory, whatever is checked before. So the reconciler, which has to answer and to verify releases
meanwhile, does not do this work itself. There is one process for each request, because libraries keep what they have
read, and one calendar must not change what another one means.
"""

import os
import resource
import signal
import sys
import zoneinfo
from typing import NoReturn

import msgspec

from reconciler.gates.problems import CalendarError, OutOfTimeError, Problem, Reason, ScheduleError
from reconciler.gates.question import Answer, Request

CPU_SECONDS = 5
"""The limit of CPU time. A large calendar of a real company takes less than a second."""

MEMORY = 96 * 2**20
"""The limit of the address space, in bytes. The process begins with a quarter of it, as much as the largest calendar
needs that is no attack. It is far below the memory limit of the container."""

_KILLED_AFTER = 2  # further seconds of CPU time


def answer(request: Request) -> Answer:
    """The answer to a request. OutOfTimeError: the limit of CPU time is reached."""
    try:
        from reconciler.gates import schedules, times  # here, so that the limits are set before libraries are loaded

        spans = schedules.intervals(request.spec, request.texts, request.begin, request.end)
    except ScheduleError as error:
        return Answer(problem=error.problem)
    except MemoryError:
        return Answer(problem=CalendarError("the calendars need too much memory; remove events that are past").problem)
    return Answer(times=times.bounded(spans, request.end))


def main() -> None:
    """Answer the request."""
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + _KILLED_AFTER))
    signal.signal(signal.SIGXCPU, _out_of_time)
    zoneinfo.reset_tzpath(())  # the time zones of the package tzdata, whatever the machine has
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    sys.stdout.buffer.write(msgspec.json.encode(_within_time(request)))


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
