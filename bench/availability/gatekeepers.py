"""Three gatekeepers behind one address, each with its own certgen, as the chart's pods have them."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from altershield.process.children import Process, free_ports
from bench.availability.installation import WEBHOOK_SECONDS, Installation, until_asked, webhooks
from bench.availability.kubelet import NOTICED_SECONDS, READINESS, Probe, is_ready, probed
from bench.availability.service import NEVER, Endpoint, Service
from bench.availability.waiting import until

REPLICAS = 3
LEAF_LIFETIME = 60
"""Seconds. Certificates are renewed every forty of them, whatever else goes on."""


class Pod:
    """A gatekeeper and its certgen, with the node under them. All are killed when the block around them ends."""

    def __init__(
        self,
        installation: Installation,
        directory: Path,
        name: str,
        shutdown_delay: float,
        readiness: Probe = READINESS,
    ) -> None:
        port, health_port = free_ports(2)
        self.endpoint = Endpoint(port, health_port)
        self._readiness = readiness
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
            *("--tls-cert-file", str(self.certificate), "--tls-private-key-file", str(tls / "tls.key")),
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._certgen:
            await self._start()
            try:
                yield
            finally:
                self._probing.cancel()
                for each in (self._gatekeeper, self._certgen):
                    each.send(signal.SIGKILL)
                await self._gatekeeper.wait()

    async def _start(self) -> None:
        self._gatekeeper = process(self._directory, *self._command)
        await self._gatekeeper.__aenter__()
        self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        async for ready in probed(self._readiness, lambda: is_ready(self.endpoint.health_port)):
            self.endpoint.ready = ready

    async def _end(self, how: signal.Signals) -> None:
        """Nobody is routed to it any more when this returns, as it has ended."""
        self._probing.cancel()
        self._gatekeeper.send(how)
        await asyncio.sleep(NOTICED_SECONDS)
        self.endpoint.ready = False
        await self._gatekeeper.wait()

    async def delete(self) -> None:
        """As a node does when the pod is deleted: SIGTERM, and wait for the end."""
        await self._end(signal.SIGTERM)

    def hang(self) -> None:
        """SIGSTOP: connections are still accepted, by the kernel, and nothing is answered."""
        self.endpoint.hung_at = asyncio.get_running_loop().time()
        self._gatekeeper.send(signal.SIGSTOP)

    async def kill(self) -> None:
        """SIGKILL, and start the gatekeeper again, as a node does with a container; until it is known to be ready."""
        self.endpoint.killed_at = asyncio.get_running_loop().time()
        await self._end(signal.SIGKILL)
        await self._start()
        await self.until_ready()
        self.endpoint.killed_at = self.endpoint.hung_at = NEVER

    async def until_ready(self) -> None:
        """Wait until its node knows that it is."""
        await until(lambda: self.endpoint.ready, "a gatekeeper to be ready")


class Gatekeepers:
    """The gatekeepers' Service, and its pods."""

    def __init__(
        self, installation: Installation, directory: Path, shutdown_delay: float, readiness: Probe = READINESS
    ) -> None:
        self.installation = installation
        self.service = Service()
        self.pods: list[Pod] = []
        self._directory = directory
        self._shutdown_delay = shutdown_delay
        self._readiness = readiness
        self._made = 0
        self._running = contextlib.AsyncExitStack()

    @contextlib.asynccontextmanager
    async def running(
        self, replicas: int = REPLICAS, webhook_seconds: int | None = WEBHOOK_SECONDS
    ) -> AsyncIterator[None]:
        """Until the block ends there are so many gatekeepers, and the API server asks them, and waits for an answer
        for so long (None: as the chart has it)."""
        async with (
            self.service.running(),
            webhooks(self.installation, self.service.port, webhook_seconds),
            self._running,
        ):
            await asyncio.gather(*[self.add() for _ in range(replicas)])
            await until_asked(self.installation)
            yield

    async def add(self) -> Pod:
        """One more pod, once it is ready."""
        self._made += 1
        name = f"pod-{self._made}"
        pod = Pod(self.installation, self._directory, name, self._shutdown_delay, self._readiness)
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

    async def rotate(self, *options: str) -> None:
        """`certgen rotate`, as an administrator does."""
        log = self._directory / "rotate.log"
        common = ("--kubeconfig", str(self.installation.admin_kubeconfig), *certgen_options(self.installation))
        async with process(log.parent, "certgen", "rotate", *common, *options) as command:
            if await command.wait():
                raise RuntimeError(f"certgen rotate failed: {command.last_line()}")


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
