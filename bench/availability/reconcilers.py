"""Three reconcilers, as in the chart's pods: one leads, two are followers."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from altershield.api import names
from bench.availability.gatekeepers import REPLICAS, process
from bench.availability.installation import Installation
from bench.harness.waiting import until
from kube_base.access.errors import NotFoundError
from kube_base.processes import Process
from kube_base.resources import LEASES

START_TIMEOUT = 8
LEASE_SECONDS = 4


class Reconcilers:
    def __init__(self, installation: Installation, directory: Path) -> None:
        self._installation = installation
        self._directory = directory
        self._running = contextlib.AsyncExitStack()
        self._processes: dict[str, Process] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._running:
            for _ in range(REPLICAS):
                await self._start()
            yield

    async def _start(self) -> None:
        identity = f"reconciler-{len(self._processes) + 1}"
        started = process(
            self._directory,
            *("reconciler", "--kubeconfig", str(self._installation.kubeconfig_for(identity)), "--metrics-port", "0"),
            *("--identity", identity, "--lease-duration", str(LEASE_SECONDS)),
            *("--start-timeout", str(START_TIMEOUT), "--observe-seconds", "1", "--batch-wait", "1"),
        )
        self._processes[identity] = await self._running.enter_async_context(started)

    async def leader(self) -> str:
        """Wait until a reconciler holds the Lease. Returns its identity."""
        holder = ""

        async def leads() -> bool:
            nonlocal holder
            try:
                lease: dict[str, Any] = await self._installation.admin.get(LEASES, names.LEASE, names.SYSTEM_NAMESPACE)
            except NotFoundError:  # no reconciler has led yet
                return False
            holder = str(lease["spec"]["holderIdentity"])
            return bool(holder)

        await until(leads, "a leader")
        return holder

    async def kill(self, leader: str) -> float:
        """Send SIGKILL to the leader, and start it again as a node does. Returns the seconds until another one led."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._processes[leader].send(signal.SIGKILL)
            await self._processes[leader].wait()
            await self._start()
            holder = await self.leader()
            if holder == leader:
                break
            leader = holder  # on a busy machine the Lease may change just before the kill

        await self.until_another_leads(leader)
        return loop.time() - began

    async def until_another_leads(self, leader: str) -> None:
        async def replaced() -> bool:
            return await self.leader() != leader

        await until(replaced, "another leader")

    def lose_node(self, identity: str) -> None:
        """Stop the reconciler without closing a connection."""
        self._processes[identity].send(signal.SIGSTOP)

    def return_node(self, identity: str) -> None:
        self._processes[identity].send(signal.SIGCONT)
