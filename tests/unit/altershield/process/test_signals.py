"""Signals that stop a command: it deletes its temporary files."""

import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.processes import running, wait_for_line

PROGRAM = """\
import asyncio, signal, sys, tempfile
from altershield.process.signals import cancel_on, stop_event

async def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        if sys.argv[2] == "stop_event":
            stop = stop_event()
            print("ready", flush=True)
            await stop.wait()
        else:
            cancel_on(signal.SIGTERM, signal.SIGHUP)
            print("ready", flush=True)
            await asyncio.sleep(60)

# whatever started the tests
signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in sys.argv else signal.SIG_DFL)
try:
    asyncio.run(main())
except asyncio.CancelledError:
    pass
print("ended", flush=True)
"""


@pytest.mark.parametrize("way", ["stop_event", "cancel_on"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_command_after_its_temporary_files_are_deleted(
    tmp_path: Path, way: str, number: signal.Signals
) -> None:
    log, place = tmp_path / "log", tmp_path / "files"
    place.mkdir()
    with running([sys.executable, "-c", PROGRAM, str(place), way], log, may_end=True) as process:
        wait_for_line(process, log, "ready")
        assert len(list(place.iterdir())) == 1
        process.send_signal(number)
        assert process.wait() == 0
    assert log.read_text() == "ready\nended\n"
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("way", ["stop_event", "cancel_on"])
def test_command_that_nohup_started_goes_on_when_the_terminal_is_closed(tmp_path: Path, way: str) -> None:
    log = tmp_path / "log"
    with running([sys.executable, "-c", PROGRAM, str(tmp_path), way, "nohup"], log) as process:
        wait_for_line(process, log, "ready")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert process.poll() is None
