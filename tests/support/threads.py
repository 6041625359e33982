"""An event loop in a thread, for tests that are not asynchronous."""

import asyncio
import contextlib
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import uvloop

from tests.support.polling import HANG

T = TypeVar("T")


@contextlib.contextmanager
def in_a_thread(served: contextlib.AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Run the context manager `served` in a thread until the block ends, and yield its value. An error of `served` is
    raised at the end of the block."""
    up: Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        async with served as value:
            stop = asyncio.Event()
            up.set_result((value, asyncio.get_running_loop(), stop))
            await stop.wait()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(uvloop.run, run())  # the event loop of production, which is also faster
        first: tuple[Future[Any], ...] = (up, running)
        wait(first, HANG, FIRST_COMPLETED)
        if running.done():
            running.result()
        value, loop, stop = up.result(0)
        try:
            yield value
        finally:
            loop.call_soon_threadsafe(stop.set)
            running.result(HANG)
