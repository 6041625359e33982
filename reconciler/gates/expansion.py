"""Has the times of ReleaseWindows worked out by the worker, and stops a worker that takes too long.

The start of a worker takes much longer than its work. So one worker answers the requests without calendars that wait
for each other, as after the start of a reconciler. None stays when no request waits.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from weakref import WeakValueDictionary

import msgspec

from reconciler.gates.problems import Problem, Reason
from reconciler.gates.question import Answer, Request
from reconciler.gates.times import Times

_SECONDS = 300.0
"""A worker that has not answered by then is stopped. It gives up by itself after some seconds of CPU time, which take
long on a busy machine."""


class StoppedError(Exception):
    """The worker was stopped, or ended without an answer."""


class Expansion:
    """`await expansion(request, namespace)` works out the times of a window of this namespace.

    One worker at a time reads calendars, and one reads none, so that no calendar delays windows that need no calendar.
    The namespaces take turns, so that the windows of one of them do not delay those of the others.
    """

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", "reconciler.gates.worker")) -> None:
        self._command = command
        self._workers = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Lock] = WeakValueDictionary()
        self._plain: subprocess.Popen[bytes] | None = None
        """The worker that reads no calendars, while requests wait for it."""
        self._waiting = 0
        """How many requests without calendars are not answered."""

    async def __call__(self, request: Request, namespace: str) -> Times | Problem:
        """The times, or why there are none. StoppedError: try again later."""
        reads = bool(request.texts)
        turn = self._turns.setdefault((namespace, reads), asyncio.Lock())
        self._waiting += not reads
        try:
            async with turn, self._workers[reads]:  # locks are first come, first served
                answer = await (self._ask_once(request) if reads else self._ask_again(request))
        finally:
            self._waiting -= not reads
            if not self._waiting:
                self._end_plain()
        if answer.times is not None:
            return answer.times
        return answer.problem or Problem(Reason.SCHEDULE_INVALID, "the schedules have no times")

    async def _ask_once(self, request: Request) -> Answer:
        process = self._start()
        try:
            return await _answer(process, request)
        finally:
            _end(process)

    async def _ask_again(self, request: Request) -> Answer:
        """The answer of a worker that may have answered other requests, each of them with times: after a problem, such
        as too much memory, it may not be as it was."""
        self._plain = self._plain or self._start()
        answer = Answer()
        try:
            answer = await _answer(self._plain, request)
        finally:
            if answer.times is None:
                self._end_plain()
        return answer

    def _end_plain(self) -> None:
        process, self._plain = self._plain, None
        if process is not None:
            _end(process)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker by vfork. uvloop would copy the page tables of this process, which takes as long as dozens of
        reconciles."""
        environment = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
        return subprocess.Popen(  # noqa: S603  (the command is fixed)
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,  # without the credentials of this process
        )


async def _answer(process: subprocess.Popen[bytes], request: Request) -> Answer:
    """The answer of a worker. StoppedError: it does not answer."""
    try:
        async with asyncio.timeout(_SECONDS):
            line = await asyncio.to_thread(_exchange, process, msgspec.json.encode(request) + b"\n")
    except TimeoutError as error:
        raise StoppedError(f"the worker did not answer within {_SECONDS:g} s") from error
    try:
        return msgspec.json.decode(line, type=Answer)
    except msgspec.DecodeError as error:
        raise StoppedError(f"the worker ended with exit code {_end(process)} and no answer") from error


def _exchange(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    """Send a request, and wait for the answer; empty: the worker has ended."""
    if process.stdin is None or process.stdout is None:
        return b""
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line)
        process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        process.wait()
    return answer


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a worker. Returns its exit code."""
    process.kill()
    code = process.wait()  # at once
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    return code
