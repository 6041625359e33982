"""A process that ends is started again in the same container, once it was ready."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from altershield.process import restarts
from altershield.process.cgroup import Memory
from kube_base.processes import free_ports
from tests.support.polling import eventually, until

PACE = 0.1

CHILD = """
import http.server, os, pathlib, signal, sys, threading

port, runs = int(sys.argv[1]), pathlib.Path(sys.argv[2])
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path == "/healthz":  # asked after the process was ready
            with runs.open("a") as file:
                print(os.getpid(), file=file)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
signal.sigwait({signal.SIGTERM})
os._exit(7)
"""


class Kept:
    """A process that answers its probes, and the process that starts it again."""

    def __init__(self, port: int, runs: Path) -> None:
        self.port = port
        self.used = Memory(0, 0)
        self.stop = asyncio.Event()
        self._runs = runs
        command = [sys.executable, "-c", CHILD, str(port), str(runs)]
        keeping = restarts.keep(command, port, self.stop, used=lambda: self.used, pace=PACE)
        self.keeping = asyncio.create_task(keeping)

    def runs(self) -> list[int]:
        """The process ids of all runs that were ready and asked for their health."""
        return list(map(int, dict.fromkeys(self._runs.read_text().split()))) if self._runs.exists() else []

    async def until_ready(self, run: int) -> None:
        """Wait until the nth run is ready, and `keep` knows it."""
        await until(lambda: len(self.runs()) >= run, f"run {run}")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    (port,) = free_ports(1)
    started = Kept(port, tmp_path / "runs")
    yield started
    started.stop.set()
    with contextlib.suppress(asyncio.CancelledError):
        await started.keeping


async def test_process_that_crashes_again_and_again_is_started_again_each_time(kept: Kept) -> None:
    for run in (1, 2, 3):
        await kept.until_ready(run)
        os.kill(kept.runs()[-1], signal.SIGKILL)
    await kept.until_ready(4)
    assert not kept.keeping.done(), "the container would not be ready"


async def test_process_that_was_never_ready_ends_the_container_with_its_exit_code() -> None:
    (port,) = free_ports(1)
    code = await restarts.keep([sys.executable, "-c", "raise SystemExit(2)"], port, asyncio.Event(), pace=PACE)
    assert code == 2


async def test_process_that_needs_too_much_memory_is_killed_before_the_container(kept: Kept) -> None:
    await kept.until_ready(1)
    kept.used = Memory(working_set=95, limit=100)
    first = kept.runs()[0]
    await until(lambda: _ended(first), "the end of the process")
    kept.used = Memory(working_set=50, limit=100)
    await kept.until_ready(2)


async def test_process_that_hangs_is_killed(kept: Kept) -> None:
    await kept.until_ready(1)
    os.kill(kept.runs()[0], signal.SIGSTOP)
    await kept.until_ready(2)


async def test_stop_is_passed_on_and_the_exit_code_is_that_of_the_process(kept: Kept) -> None:
    await kept.until_ready(1)
    kept.stop.set()
    assert await kept.keeping == 7


async def test_stop_ends_the_wait_for_the_next_start(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restarts, "FIRST_DELAY", 1e6)
    await kept.until_ready(1)
    os.kill(kept.runs()[0], signal.SIGKILL)
    await until(lambda: "the process is started again" in caplog.text)
    kept.stop.set()
    assert await kept.keeping == 0


def test_delay_doubles_up_to_a_minute_and_begins_anew_after_a_long_run() -> None:
    delays, waited = [], 0.0
    for _ in range(8):
        waited = restarts.delay(waited, ran=5)
        delays.append(waited)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60]
    assert restarts.delay(60, ran=restarts.STEADY) == 1


def test_sigterm_reaches_the_process_of_the_command_line(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "child.py").write_text(
        CHILD.replace("int(sys.argv[1])", 'int(sys.argv[1].removeprefix("--metrics-port="))')
    )
    command = [sys.executable, "-m", "altershield.process.restarts", "child", f"--metrics-port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([*command, str(tmp_path / "runs")], env=environment) as started:
        eventually(lambda: _listens(port), "the process")
        started.terminate()
        assert started.wait() == 7


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()
