import asyncio
import signal
import socket
import sys
from pathlib import Path

import pytest

from kube_base.processes import Process, free_ports
from tests.support.polling import until

WAIT = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}"


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_process_ends_with_its_block(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with Process([sys.executable, "-c", WAIT], log) as process:
        await until(lambda: "up" in log.read_text())
        assert process.ended is None
    assert process.ended == -signal.SIGTERM


async def test_process_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube_base.processes._STOP_SECONDS", 0.1)
    log = tmp_path / "log"
    async with Process([sys.executable, "-c", STUBBORN], log) as process:
        await until(lambda: "up" in log.read_text())
    assert process.ended == -signal.SIGKILL


async def test_children_of_the_process_end_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    start = f"child = subprocess.Popen([sys.executable, '-c', {WAIT!r}])"
    code = f"import subprocess, sys; {start}; print(child.pid, flush=True); child.wait()"
    async with Process([sys.executable, "-c", code], log):
        await until(lambda: log.read_text().split())
        child = int(log.read_text().split()[0])
        assert is_alive(child)
    await until(lambda: not is_alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
async def test_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    starter = f"""
import asyncio, sys
from pathlib import Path
from kube_base.processes import Process
async def main():
    async with Process([sys.executable, "-c", "import os; print(os.getpid(), flush=True); {WAIT}"], Path({str(log)!r})):
        await asyncio.sleep(60)
asyncio.run(main())
"""
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", starter)
    await until(lambda: log.exists() and log.read_text().split())
    program = int(log.read_text().split()[0])
    killed.kill()
    await killed.wait()
    await until(lambda: not is_alive(program))


async def test_last_line_is_the_last_line_of_the_log_that_is_not_empty(tmp_path: Path) -> None:
    code = "print('first'); print('it went wrong'); print(); raise SystemExit(3)"
    async with Process([sys.executable, "-c", code], tmp_path / "log") as process:
        await until(lambda: process.ended is not None)
        assert process.ended == 3
        assert process.last_line() == "it went wrong"
    (tmp_path / "log").write_bytes(b"")
    assert process.last_line() == "the log is empty"


def test_free_ports_are_distinct_and_free() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
