"""Three gatekeepers behind one address, each with its own certgen, as in the chart's pods."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from bench.availability.installation import WEBHOOK_SECONDS, Installation, until_called, webhooks
from bench.availability.kubelet import NOTICED_SECONDS, READINESS, Probe, is_ready, probed
from bench.availability.service import NEVER, Endpoint, Service
from bench.harness.waiting import until
from kube_base.processes import Process, free_ports

REPLICAS = 3
LEAF_LIFETIME = 60
"""Seconds. certgen renews the certificate every 40 seconds, in all phases."""


class Pod:
    """A gatekeeper, its certgen, and the probes of their node. All are killed when the block `running` ends."""

    def __init__(
        self,
        installation: Installation,
        directory: Path,
        name: str,
        shutdown_delay: float,
        readiness: Probe = READINESS,
    ) -> None:
        self.name = name
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
        """Send a signal to the gatekeeper, and wait until it has ended and gets no new connections."""
        self._probing.cancel()
        self._gatekeeper.send(how)
        await asyncio.sleep(NOTICED_SECONDS)
        self.endpoint.ready = False
        await self._gatekeeper.wait()

    async def delete(self) -> None:
        """End the pod as a node does when the pod is deleted: send SIGTERM and wait for the end."""
        await self._end(signal.SIGTERM)

    def hang(self) -> None:
        """Send SIGSTOP. The kernel still accepts connections, but the process answers nothing."""
        self.endpoint.hung_at = asyncio.get_running_loop().time()
        self._gatekeeper.send(signal.SIGSTOP)

    def lose_node(self) -> None:
        """Stop the pod's processes and the probes of its node, without closing a connection."""
        self._probing.cancel()
        self._certgen.send(signal.SIGSTOP)
        self.hang()

    def return_node(self) -> None:
        """Continue the processes and the probes."""
        for each in (self._gatekeeper, self._certgen):
            each.send(signal.SIGCONT)
        self._probing = asyncio.create_task(self._probe())
        self.endpoint.hung_at = NEVER

    async def evict(self) -> None:
        """End the pod as a kubelet does when its node lacks memory: SIGKILL, without a grace period."""
        self.endpoint.killed_at = asyncio.get_running_loop().time()
        self._certgen.send(signal.SIGKILL)
        await self._end(signal.SIGKILL)

    async def kill(self) -> None:
        """Send SIGKILL, start the gatekeeper again as a node does, and wait until it is ready."""
        self.endpoint.killed_at = asyncio.get_running_loop().time()
        await self._end(signal.SIGKILL)
        await self._start()
        await self.until_ready()
        self.endpoint.killed_at = self.endpoint.hung_at = NEVER

    async def until_ready(self) -> None:
        """Wait until the readiness probe succeeds."""
        await until(lambda: self.endpoint.ready, "a gatekeeper to be ready")


class Gatekeepers:
    """The gatekeepers' pods and their Service."""

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
        """Run `replicas` gatekeepers until the block ends. The API server calls them, with the timeout
        `webhook_seconds` (None: the chart's value)."""
        async with (
            self.service.running(),
            webhooks(self.installation, self.service.port, webhook_seconds),
            self._running,
        ):
            await asyncio.gather(*[self.add() for _ in range(replicas)])
            await until_called(self.installation)
            yield

    async def add(self) -> Pod:
        """Start another pod, and wait until it is ready."""
        self._made += 1
        name = f"pod-{self._made}"
        pod = Pod(self.installation, self._directory, name, self._shutdown_delay, self._readiness)
        await self._running.enter_async_context(pod.running())
        await pod.until_ready()
        self.pods.append(pod)
        self.service.endpoints.append(pod.endpoint)
        return pod

    async def roll(self, min_ready_seconds: float) -> None:
        """Replace all pods as a Deployment with `maxSurge: 1` and `maxUnavailable: 0` does. Returns when all old pods
        have ended."""
        async with asyncio.TaskGroup() as group:
            for old in list(self.pods):
                await self.add()
                await asyncio.sleep(min_ready_seconds)
                group.create_task(self._remove(old))

    async def evict(self, pod: Pod) -> None:
        """Evict the pod as a kubelet does, at once. Returns when the pod that replaces it is ready."""
        self.pods.remove(pod)
        await asyncio.gather(pod.evict(), self.add())
        self.service.endpoints.remove(pod.endpoint)

    async def _remove(self, pod: Pod) -> None:
        self.pods.remove(pod)
        await pod.delete()
        self.service.endpoints.remove(pod.endpoint)

    async def rotate(self, *options: str) -> None:
        """Run `certgen rotate` as an administrator."""
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
    """A Python module of AlterShield as a child process, without the ALTERSHIELD_ variables of this environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    return Process([sys.executable, "-m", module, *arguments], directory / f"{module}.log", environment)
