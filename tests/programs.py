"""Programs that run beside a test."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_STOP_SECONDS = 60


@contextlib.contextmanager
def running(arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """The program runs in its log's directory while the block does, and may not end by itself; then SIGTERM ends it.
    What it says is added to `log`."""
    with log.open("ab") as out:
        started = subprocess.Popen(arguments, stdout=out, stderr=out, env=environment, cwd=log.parent)
    try:
        yield
        assert started.poll() is None, f"{arguments[:4]} ended:\n{log.read_text()[-4000:]}"
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(_STOP_SECONDS)
