"""Child processes that stop when the `with` block ends, or when this process crashes."""

import asyncio
import contextlib
import ctypes
import errno
import os
import secrets
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_STOP_SECONDS = 5.0
_LOG_TAIL = 16 * 1024
_PR_SET_PDEATHSIG = 1  # prctl(2)


class Process:
    """`async with Process(command, log)` runs a program in its own process group, with its output in the file `log`
    (None: in the output of this process).

    At the end of the block the program gets SIGTERM. After five seconds its process group gets SIGKILL.
    """

    def __init__(self, command: Sequence[str], log: Path | None, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.name = Path(command[0]).name
        self._command = command
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    @property
    def ended(self) -> int | None:
        """The exit code, negative for a signal. None: the program has not ended."""
        return self._process.returncode if self._process else None

    def last_line(self) -> str:
        """The last line of the log that is not empty."""
        if self.log is None:
            return "see above"
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _LOG_TAIL))
            lines = log.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "the log is empty")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program. Nothing happens if it has ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL to the process group of the program."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def wait(self) -> int:
        """Wait until the program ends. Return its exit code."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return await self._process.wait()

    async def __aenter__(self) -> Self:
        with self.log.open("ab") if self.log else contextlib.nullcontext() as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        self.kill()
        await process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that no process listens on. They are below 32768: Linux gives higher ports to
    sockets that ask for any port, so another socket could take such a port before the caller uses it."""
    ports: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(ports) < count:
            port, probe = 20000 + secrets.randbelow(12768), stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                ports.append(port)
    return ports


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    """In the child: let the kernel send SIGKILL when the parent dies."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
