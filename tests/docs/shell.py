"""The terminals in which the commands of a page run."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.polling import HANG

_END = "--- end of the block ---"


class Shell:
    """One bash for all blocks of a page, so that variables persist. It ends when a command fails. stdout and stderr are
    one text, as in a terminal."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = dict(environment)
        self._process = _bash(["-eo", "pipefail"], directory, environment)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._others: list[subprocess.Popen[str]] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def run(self, text: str, seconds: float = HANG) -> str:
        """Run the block and return its output. Raise AssertionError if a command fails or takes too long."""
        block = self._directory / ".block.sh"
        block.write_text(text)
        assert self._process.stdin is not None
        self._process.stdin.write(f". {block} </dev/null\nprintf '\\n%s\\n' '{_END}'\n")
        self._process.stdin.flush()
        deadline, said = time.monotonic() + seconds, ""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not done after {seconds:.0f} s:\n{text}\noutput so far:\n{said}") from None
            assert line is not None, f"failed:\n{text}\noutput:\n{said}"
            if line.strip() == _END:
                return said
            said += line

    def leave_up(self, text: str, until: str, seconds: float = HANG) -> None:
        """Run the block in another terminal until it prints `until`. The terminal is closed with this shell."""
        other = _bash(["-eo", "pipefail", "-c", text], self._directory, self._environment)
        self._others.append(other)
        assert other.stdout is not None
        timer = threading.Timer(seconds, other.kill)
        timer.start()
        said = ""
        for line in other.stdout:
            said += line
            if until in line:
                break
        else:
            raise AssertionError(f"the block did not print {until!r}:\n{text}\noutput:\n{said}")
        timer.cancel()
        threading.Thread(target=_drain, args=(other,), daemon=True).start()

    def close(self) -> None:
        """End the shell, then the other terminals in reverse order."""
        for process in (self._process, *reversed(self._others)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def terminal(directory: Path, environment: Mapping[str, str]) -> Iterator[Shell]:
    shell = Shell(directory, environment)
    try:
        yield shell
    finally:
        shell.close()


def _bash(arguments: list[str], directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _drain(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for _ in process.stdout:
        pass
