"""Has the times of ReleaseWindows worked out by the worker, and stops a worker that takes too long."""

import asyncio
import os
import subprocess
import sys
from weakref import WeakValueDictionary

import msgspec

from reconciler.gates.problems import Problem, Reason
from reconciler.gates.question import Answer, Request
from reconciler.gates.times import Times

_SECONDS = 60.0
"""A worker that has not ended by then is stopped. It stops by itself after some seconds of CPU time."""


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

    async def __call__(self, request: Request, namespace: str) -> Times | Problem:
        """The times, or why there are none. StoppedError: try again later."""
        reads = bool(request.texts)
        turn = self._turns.setdefault((namespace, reads), asyncio.Lock())
        async with turn, self._workers[reads]:  # locks are first come, first served
            output, code = await self._run(msgspec.json.encode(request))
        try:
            answer = msgspec.json.decode(output, type=Answer)
        except msgspec.DecodeError as error:
            raise StoppedError(f"the worker ended with exit code {code} and no answer") from error
        if answer.times is not None:
            return answer.times
        return answer.problem or Problem(Reason.SCHEDULE_INVALID, "the schedules have no times")

    async def _run(self, request: bytes) -> tuple[bytes, int]:
        """The output of a worker and its exit code."""
        process = self._start()
        try:
            output, _ = await asyncio.to_thread(process.communicate, request, _SECONDS)
        except subprocess.TimeoutExpired as error:
            raise StoppedError(f"the worker did not end within {_SECONDS:g} s") from error
        finally:
            process.kill()
            code = process.wait()  # at once
        return output, code

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
