"""A reconciler whose event loop is watched: `python -m bench.harness.held_loop KUBECONFIG`.

Each line of input names the state to wait for: `list` (all caches are full) or `rest` (nothing is to be done). A line
of output has the figures of a `Sample`. With PROFILE=FILE in the environment, the process writes what cProfile found.
"""

import asyncio
import cProfile
import os
import sys
import time
from collections.abc import Sequence

import msgspec
import uvloop

from bench.harness import proc
from kube_base.access.client import Client
from reconciler.manager import Manager
from reconciler.options import Options

_OPTIONS = Options(identity="bench", metrics_port=0)
_QUIET = 1.5  # a phase is over after so many seconds without work


class Sample(msgspec.Struct):
    """What the process has used since its start, and the longest block of its event loop since the sample before.
    Seconds and MiB."""

    blocked: float = 0.0
    """CPU time of the thread, which does not include other processes of the machine."""
    blocked_wall: float = 0.0
    at: float = 0.0
    """When the last work was seen (`time.monotonic()`)."""
    cpu: float = 0.0
    reconciles: int = 0
    resident: int = 0
    peak: int = 0


class Watchdog:
    """Measures the longest time for which the event loop is blocked."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0

    async def run(self) -> None:
        while True:
            cpu, wall = time.thread_time(), time.perf_counter()
            await asyncio.sleep(0.001)
            self.cpu = max(self.cpu, time.thread_time() - cpu)
            self.wall = max(self.wall, time.perf_counter() - wall - 0.001)

    def take(self) -> tuple[float, float]:
        found, self.cpu, self.wall = (self.cpu, self.wall), 0.0, 0.0
        return found


async def run(path: str) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Queue[str]()
    loop.add_reader(sys.stdin, lambda: asked.put_nowait(sys.stdin.readline()))
    watchdog = Watchdog()
    async with await Client.connect(path) as client:
        manager = Manager(client, _OPTIONS)
        background = [asyncio.create_task(manager.run(asyncio.Event())), asyncio.create_task(watchdog.run())]
        while wanted := (await asked.get()).strip():
            at = await _until(wanted, manager, background)
            blocked, blocked_wall = watchdog.take()
            sample = Sample(
                blocked=blocked,
                blocked_wall=blocked_wall,
                at=at,
                cpu=time.process_time(),
                reconciles=manager.queues["releases"].taken,
                resident=proc.memory(os.getpid()),
                peak=proc.memory(os.getpid(), "VmHWM"),
            )
            print(msgspec.json.encode(sample).decode(), flush=True)
        for task in background:
            task.cancel()


async def _until(wanted: str, manager: Manager, background: Sequence[asyncio.Task[None]]) -> float:
    """Wait for the state. Returns when it began."""
    synced = manager.caches.required
    worked, taken = time.monotonic(), -1
    while time.monotonic() - worked < _QUIET or not all(each.synced for each in synced):
        now = sum(queue.taken for queue in manager.queues.values())
        if now != taken or any(queue.depth for queue in manager.queues.values()):
            worked, taken = time.monotonic(), now
        await asyncio.sleep(0.05)
        if wanted == "list" and all(each.synced for each in synced):
            return time.monotonic()
        for task in background:
            if task.done():
                task.result()
    return worked


def main() -> None:
    profile = cProfile.Profile() if "PROFILE" in os.environ else None
    if profile is not None:
        profile.enable()
    uvloop.run(run(sys.argv[1]))
    if profile is not None:
        profile.dump_stats(os.environ["PROFILE"])


if __name__ == "__main__":
    main()
