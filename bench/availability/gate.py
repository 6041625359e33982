"""Three gatekeepers behind one address, each with its own certgen, as the chart's pods have them."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from altershield.processes import Process, free_ports
from altershield.serving import is_ready
from bench.availability.installation import Installation, until_asked, webhooks
from bench.availability.service import Endpoint, Service
from bench.availability.waiting import until

REPLICAS = 3
LEAF_LIFETIME = 60
"""Seconds. Certificates are renewed every forty of them, whatever else goes on."""


class Pod:
    """A gatekeeper and its certgen. They are killed when the block around them ends."""

    def __init__(self, installation: Installation, directory: Path, name: str, shutdown_delay: float) -> None:
        port, health_port = free_ports(2)
        self.endpoint = Endpoint(port, health_port)
        self._directory = directory / name
        self._directory.mkdir()
        tls = self._directory / "tls"
        self.certificate = tls / "tls.crt"
        self._certgen = process(
            self._directory,
            *("certgen", "run", "--kubeconfig", str(installation.admin_kubeconfig), "--metrics-port", "0"),
            *("--directory", str(tls), *certgen_options(installation)),
        )
        self._command = (
            *("gatekeeper", "--kubeconfig", str(installation.kubeconfig_for(name)), "--host", "127.0.0.1"),
            *("--port", str(port), "--metrics-port", str(health_port), "--shutdown-delay", str(shutdown_delay)),
            *(
                "--tls-cert-file",
                str(self.certificate),
                "--tls-private-key-file",
                str(tls / "tls.key"),
            ),
        )
        self._gatekeeper = process(self._directory, *self._command)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._certgen:
            await self._gatekeeper.__aenter__()
            try:
                yield
            finally:
                await self._end(signal.SIGKILL)
                self._certgen.send(signal.SIGKILL)

    async def _end(self, how: signal.Signals) -> None:
        self._gatekeeper.send(how)
        await self._gatekeeper.wait()

    async def delete(self) -> None:
        """As a node does when the pod is deleted: SIGTERM, and wait for the end."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL, and start the gatekeeper again, as a node does with a container."""
        await self._end(signal.SIGKILL)
        self._gatekeeper = process(self._directory, *self._command)
        await self._gatekeeper.__aenter__()

    async def until_ready(self) -> None:
        async with aiohttp.ClientSession() as session:
            await until(lambda: is_ready(session, self.endpoint.health_port), "a gatekeeper to be ready")


class Gate:
    """The gatekeepers' Service, and its pods."""

    def __init__(self, installation: Installation, directory: Path, shutdown_delay: float) -> None:
        self.installation = installation
        self.service = Service()
        self.pods: list[Pod] = []
        self.killed_at: list[float] = []
        """By the loop's time."""
        self._directory = directory
        self._shutdown_delay = shutdown_delay
        self._made = 0
        self._running = contextlib.AsyncExitStack()

    @contextlib.asynccontextmanager
    async def running(self, replicas: int = REPLICAS) -> AsyncIterator[None]:
        """Until the block ends there are so many gatekeepers, and the API server asks them."""
        async with self.service.running(), webhooks(self.installation, self.service.port), self._running:
            await asyncio.gather(*[self.add() for _ in range(replicas)])
            await until(lambda: all(endpoint.ready for endpoint in self.service.endpoints), "the Service's probes")
            await until_asked(self.installation)
            yield

    async def add(self) -> Pod:
        """One more pod, once it is ready; the Service sees it with its next probe."""
        self._made += 1
        pod = Pod(self.installation, self._directory, f"pod-{self._made}", self._shutdown_delay)
        await self._running.enter_async_context(pod.running())
        await pod.until_ready()
        self.pods.append(pod)
        self.service.endpoints.append(pod.endpoint)
        return pod

    async def roll(self, min_ready_seconds: float) -> None:
        """Replace all pods, as a Deployment with `maxSurge: 1` and `maxUnavailable: 0`, until the old ones end."""
        async with asyncio.TaskGroup() as group:
            for old in list(self.pods):
                await self.add()
                await asyncio.sleep(min_ready_seconds)
                group.create_task(self._remove(old))

    async def _remove(self, pod: Pod) -> None:
        self.pods.remove(pod)
        await pod.delete()
        self.service.endpoints.remove(pod.endpoint)

    async def kill(self, pod: Pod) -> None:
        """SIGKILL, and wait until its successor at the same address is known to be ready."""
        self.killed_at.append(asyncio.get_running_loop().time())
        await pod.kill()
        await pod.until_ready()
        await until(lambda: pod.endpoint.ready, "the Service's probe")

    async def rotate(self, *options: str) -> None:
        """`certgen rotate`, as an administrator does."""
        log = self._directory / "rotate.log"
        common = ("--kubeconfig", str(self.installation.admin_kubeconfig), *certgen_options(self.installation))
        async with process(log.parent, "certgen", "rotate", *common, *options) as command:
            if await command.wait():
                raise RuntimeError(f"certgen rotate failed: {command.last_words()}")


def certgen_options(installation: Installation) -> list[str]:
    options = {
        "--system-namespace": installation.name,
        "--webhook-configuration": installation.name,
        "--san": "127.0.0.1",
        "--leaf-lifetime": LEAF_LIFETIME,
        "--ca-lifetime": 3 * LEAF_LIFETIME,
        "--settle": 2,
    }
    return [str(part) for pair in options.items() for part in pair]


def process(directory: Path, module: str, *arguments: str) -> Process:
    """A program of ours; only the options given here count, not our own environment's."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    return Process([sys.executable, "-m", module, *arguments], directory / f"{module}.log", environment)
