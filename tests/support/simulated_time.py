"""Simulated time: when a loop has nothing to do until the next timer, its time moves there at once."""

import asyncio
from contextlib import AbstractContextManager

import looptime

_POLLS = 5
"""The loop looks for data on its sockets this often before its time moves. The tests' own servers have answered by
then: they run on the same loop. With the default of 42, polling needs a third of the tests' CPU time."""


def simulated_time(loop: asyncio.BaseEventLoop) -> AbstractContextManager[None]:
    return looptime.patch_event_loop(loop, _enabled=False, noop_cycles=_POLLS).looptime_enabled()
