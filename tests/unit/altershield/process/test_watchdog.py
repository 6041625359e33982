"""A process whose event loop hangs ends, and one that only gets no CPU goes on."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from altershield.process import watchdog

HANGS = """
import asyncio, time
from altershield.process.watchdog import watched

def hang_here():
    {hang}

async def main():
    async with watched():
        print("runs", flush=True)
        await asyncio.sleep({first})
        hang_here()
        print("went on", flush=True)

asyncio.run(main())
"""


def process(hang: str, first: float = 0.0) -> "subprocess.Popen[str]":
    started = subprocess.Popen(
        [sys.executable, "-c", HANGS.format(hang=hang, first=first)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "runs\n"
    return started


@pytest.mark.parametrize("hang", ["time.sleep(60)", "while True: pass"])
def test_process_whose_event_loop_hangs_ends_and_shows_where(hang: str) -> None:
    with process(hang) as hung:
        _, errors = hung.communicate()
    assert hung.returncode == watchdog.EXIT_CODE
    assert "the event loop has not run for 4 s" in errors
    assert "in hang_here" in errors


def test_process_that_was_stopped_goes_on() -> None:
    """A node without CPU time looks the same."""
    with process("time.sleep(0.1)", first=2.0) as stopped:
        os.kill(stopped.pid, signal.SIGSTOP)
        time.sleep(watchdog.LIMIT + 2)
        os.kill(stopped.pid, signal.SIGCONT)
        output, _ = stopped.communicate()
    assert (stopped.returncode, output) == (0, "went on\n")


async def test_watchdog_ends_with_its_block() -> None:
    ended: list[bool] = []
    async with watchdog.watched(lambda: ended.append(True)):
        await asyncio.sleep(0)
    time.sleep(watchdog.LIMIT + 1)  # noqa: ASYNC251  (the event loop hangs, after the block)
    assert not ended
