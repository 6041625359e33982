"""Ends a process whose event loop hangs, so that it is restarted and other processes take its requests meanwhile.

A liveness probe notices the same, but only after minutes: it must not kill a process on a busy node.
"""

import asyncio
import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable

LIMIT = 4.0
"""Seconds for which the event loop may not run."""
EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h

_EVERY = 0.5  # seconds between looks; a look that comes twice as late shows that the whole process did not run


def _end() -> None:
    """End the process at once. No lock is taken: the event loop may hang while it holds one, such as that of a log."""
    os.write(2, b"the event loop has not run for %d s; the process ends. Its threads:\n" % LIMIT)
    faulthandler.dump_traceback(sys.__stderr__ or 2)
    os._exit(EXIT_CODE)


@contextlib.asynccontextmanager
async def watched(end: Callable[[], None] = _end) -> AsyncIterator[None]:
    """Call `end` in another thread if the running event loop hangs for `LIMIT` seconds.

    A process that was stopped, or that got no CPU, does not hang. Code that keeps the interpreter's lock also keeps the
    thread from looking; the liveness probe notices this.
    """
    loop, stopped = asyncio.get_running_loop(), threading.Event()
    ran = [time.monotonic()]

    def run() -> None:
        ran[0] = time.monotonic()
        if not stopped.is_set():
            loop.call_later(_EVERY, run)

    def watch() -> None:
        looked = since = time.monotonic()
        while not stopped.wait(_EVERY):
            now = time.monotonic()
            if now - looked > 2 * _EVERY:
                since = now
            looked = now
            if now - max(ran[0], since) > LIMIT:
                end()
                return

    run()
    threading.Thread(target=watch, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()
