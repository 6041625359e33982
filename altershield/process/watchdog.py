"""Ends a process whose event loop hangs. The process is then restarted, and other processes take its requests
meanwhile.

A liveness probe notices the same, but only after minutes, because it must not kill a process on a busy node.
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

_EVERY = 0.5  # seconds between two checks; if a check comes twice as late, the whole process did not run


def _end() -> None:
    """End the process at once. It takes no lock, because the event loop may hang while it holds one, such as the lock
    of a log handler."""
    os.write(2, b"the event loop has not run for %d s; the process ends. Its threads:\n" % LIMIT)
    faulthandler.dump_traceback(sys.__stderr__ or 2)
    os._exit(EXIT_CODE)


@contextlib.asynccontextmanager
async def watched(end: Callable[[], None] = _end) -> AsyncIterator[None]:
    """Call `end` in another thread if the running event loop hangs for `LIMIT` seconds.

    A process that was stopped, or that got no CPU, does not hang. Code that holds the interpreter's lock also stops the
    thread of this watchdog. The liveness probe notices this.
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
