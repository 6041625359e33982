"""Signals that stop a process."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def stop_event() -> asyncio.Event:
    """An event that the first SIGTERM, SIGINT or SIGHUP (the terminal was closed) sets. A second signal stops the
    process at once with exit code 1."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            logging.shutdown()
            os._exit(1)
        stop.set()

    for number in _SIGNALS:
        _handle(number, on_signal)
    return stop


def cancel_on(*numbers: signal.Signals) -> None:
    """Cancel the current task at one of these signals, so that its `finally` blocks run."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("cancel_on must be called in a task")
    for number in numbers:
        _handle(number, task.cancel)


def _handle(number: signal.Signals, handler: Callable[[], object]) -> None:
    if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
        return  # `nohup` started the process
    asyncio.get_running_loop().add_signal_handler(number, handler)
