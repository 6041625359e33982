"""Starts a process again when it ends, so that its container stays ready.

    python -m altershield.process.restarts reconciler --metrics-port=8081

A pod is ready only if all of its containers are ready. A container that crashed waits up to five minutes for its
restart, and its pod is not ready during this time. So a reconciler or certgen that crashes again and again would take
the gatekeeper out of the Service. With this process as the first process of the container, the kubelet sees no crash.

- A process that was never ready is not started again: its exit code is that of the container, as without this module.
- A process that needs too much memory is killed before the kernel kills all processes of the container.
- A process that does not answer /healthz for a minute is killed.
"""

import asyncio
import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop

from altershield.process import logs
from altershield.process.cgroup import Memory, memory
from altershield.process.signals import stop_event
from kube_base.processes import Process

logger = logging.getLogger(__name__)

FIRST_DELAY, LAST_DELAY = 1.0, 60.0
"""Seconds before the next start. They double with each start."""
STEADY = 600.0
"""Seconds of a run after which the delay is `FIRST_DELAY` again."""
MOST_MEMORY = 0.95
"""The share of the container's memory limit at which the process is killed. AlterShieldMemoryHigh fires at 0.9."""
SILENT = 60.0
"""Seconds without an answer of /healthz after which the process is killed."""

_PORT = "--metrics-port="  # the option for the port of /healthz and /readyz
_LOOK = 0.2  # seconds between two readings of the memory
_PROBE = 5.0  # seconds between two probes, and the timeout of a probe


def delay(before: float, ran: float) -> float:
    """Seconds to wait before the next start. `before` is the last such delay, 0 for none; `ran` is how long the process
    ran."""
    return FIRST_DELAY if ran >= STEADY or not before else min(before * 2, LAST_DELAY)


async def keep(
    command: Sequence[str],
    port: int,
    stop: asyncio.Event,
    *,
    used: Callable[[], Memory] = memory,
    pace: float = 1.0,
) -> int:
    """Run `command` until `stop` is set, or until it ends before it was ready once. Returns its exit code, negative for
    a signal.

    `port`: the port of its /healthz and /readyz on loopback. `used` returns the memory of the container. `pace`: a
    factor for the delays, and for the times of the probes.
    """
    waited, was_ready = 0.0, False
    while True:
        began = time.monotonic()
        async with Process(command, None) as child:
            run = _Run(child, port, used, was_ready, pace)
            await _first(child.wait(), stop.wait(), run.watch(), run.probe())
            was_ready = run.was_ready
            if stop.is_set():
                child.send(signal.SIGTERM)  # the kubelet kills it if it takes longer than the pod's grace period
            if run.kill_reason or stop.is_set():
                await child.wait()
            if stop.is_set() or not was_ready:
                return child.ended or 0
        waited = delay(waited, time.monotonic() - began)
        cause = run.kill_reason or f"it ended with exit code {child.ended}"
        logger.error("the process is started again", extra={"cause": cause, "seconds": waited})
        await _first(stop.wait(), asyncio.sleep(waited * pace))
        if stop.is_set():
            return 0


class _Run:
    """One run of the process. `kill_reason`: why the process was killed; empty: it was not."""

    def __init__(self, child: Process, port: int, used: Callable[[], Memory], was_ready: bool, pace: float) -> None:
        self.kill_reason = ""
        self.was_ready = was_ready
        self._child = child
        self._port = port
        self._used = used
        self._silent = SILENT * pace
        self._interval = _PROBE * pace

    async def watch(self) -> None:
        """Wait until the process needs too much memory, and kill it."""
        while True:
            now = self._used()
            if now.limit and now.working_set >= now.limit * MOST_MEMORY:
                self.kill_reason = f"the container uses {now.working_set} of {now.limit} bytes"
                self._child.kill()
                return
            await asyncio.sleep(_LOOK)

    async def probe(self) -> None:
        """Wait until the process or an earlier run of it was ready. Then wait until the process has not answered for
        `SILENT` seconds, and kill it."""
        answered = time.monotonic()
        while True:
            if not self.was_ready:
                self.was_ready = await _status(self._port, "/readyz", self._interval) == 200
            elif await _status(self._port, "/healthz", self._interval) == 200:
                answered = time.monotonic()
            elif time.monotonic() - answered > self._silent:
                self.kill_reason = f"it has not answered /healthz for {self._silent:.0f} s"
                self._child.kill()
                return
            await asyncio.sleep(self._interval if self.was_ready else _LOOK)


async def _status(port: int, path: str, seconds: float) -> int:
    """The status of the answer to a GET request on loopback; 0: there was no answer within these seconds. It does not
    use aiohttp, which would add 16 MiB of memory to each container."""
    with contextlib.suppress(OSError, TimeoutError, ValueError, IndexError):
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(writer):
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                return int((await reader.readline()).split()[1])
    return 0


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of the coroutines ends; cancel the others. Raises its error."""
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _main(module: str, arguments: Sequence[str]) -> int:
    ports = [int(each.partition("=")[2]) for each in arguments if each.startswith(_PORT)]
    code = await keep([sys.executable, "-m", module, *arguments], ports[-1], stop_event())
    return 128 - code if code < 0 else code  # as a shell reports a process that a signal ended


if __name__ == "__main__":
    logs.configure()
    sys.exit(uvloop.run(_main(sys.argv[1], sys.argv[2:])))
