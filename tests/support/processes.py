"""Run a command: to its end (`run`, `call`), or while a block runs (`running`)."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

import pytest

from tests.support.polling import HANG, eventually

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]
"""Runs a command with these arguments."""


def run(
    arguments: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Done:
    """Run the command without input. TimeoutExpired after `HANG`."""
    return subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        cwd=directory,
        timeout=HANG,
        check=False,
    )


def python(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Done:
    """`python -m MODULE ARGUMENTS`."""
    return run([sys.executable, "-m", module, *arguments], environment=environment)


def call(
    main: Callable[[], None],
    program: str,
    *arguments: str,
    capture: pytest.CaptureFixture[str],
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Call an entry point in this process, as its console script does. This takes milliseconds; most of a process's
    time is imports. `environment` is added to the variables of this process."""
    capture.readouterr()
    code: object = 0
    with mock.patch.object(sys, "argv", [program, *arguments]), mock.patch.dict(os.environ, environment or {}):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    stdout, stderr = capture.readouterr()
    if isinstance(code, str):  # as the interpreter does
        code, stderr = 1, f"{stderr}{code}\n"
    assert code is None or isinstance(code, int)
    return Done([program, *arguments], code or 0, stdout, stderr)


@contextlib.contextmanager
def running(
    arguments: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    may_end: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command in the directory of its log while the block runs, then stop it with SIGTERM. Its output is
    appended to `log`. AssertionError where it ends before the block does, unless it `may_end`."""
    with log.open("ab") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out, env=environment, cwd=log.parent)
    try:
        yield process
        assert may_end or process.poll() is None, f"{arguments[:4]} ended:\n{log.read_text()[-4000:]}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(HANG)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def command(
    *arguments: str, log: Path, **environment: str
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """`altershield ARGUMENTS` while the block runs."""
    program = [sys.executable, "-m", "command", *arguments]
    return running(program, log, {**os.environ, **environment}, may_end=True)


def wait_for_line(process: subprocess.Popen[bytes], log: Path, line: str) -> None:
    def met() -> bool:
        assert process.poll() is None, f"ended with {process.returncode}:\n{log.read_text()}"
        return line in log.read_text()

    eventually(met, f"{line!r} in {log}")
