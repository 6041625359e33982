"""A sandbox on which the processes of the chart really run, on this machine.

One process runs for each container of the Deployment, for any number of replicas above zero. The Service leads to the
process of the gatekeeper. The pod of `helm test` runs as a process, too.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.process.health import until_ready
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.meta import ObjectMeta
from kube_base.processes import Process, free_ports
from kube_base.resources import DEPLOYMENTS, PODS, SERVICE_ACCOUNTS
from kube_sandbox.apiserver.admission.webhooks.services import from_endpoints
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster.simulation import simulated
from tests.support.threads import in_a_thread

START_TIMEOUT = 8
"""Seconds until a rollback. The value of the chart is ignored, because two minutes are too long for a test."""

OBSERVE_SECONDS = 1
"""Seconds for which a pod has to stay ready. The value of the chart is ignored."""

_NAME = "altershield"
_COMPONENT = "app.kubernetes.io/component"

Container = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]
"""Name, command line, and the environment variables of the container."""


class _Owner(msgspec.Struct):
    """The parts of a Deployment or a Pod that this module reads."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[Path]:
    """The admin's kubeconfig of a cluster that runs until the block ends. Its errors are raised at the end."""
    kubeconfig = directory / "kubeconfig"
    with in_a_thread(_served(directory)) as content:
        kubeconfig.write_text(content)
        yield kubeconfig


@contextlib.asynccontextmanager
async def _served(directory: Path) -> AsyncIterator[str]:
    """The content of the admin's kubeconfig."""

    def locate(namespace: str, name: str, port: int) -> tuple[str, int]:
        from_endpoints(api.store)(namespace, name, port)  # raises if the Service has no endpoint
        return "127.0.0.1", node.port

    api = ApiServer(services=locate)
    async with api:
        admin = directory / "admin.kubeconfig"
        await asyncio.to_thread(admin.write_text, api.kubeconfig())
        async with simulated(admin), await Client.connect(str(admin)) as client:
            node = _Node(client, api, directory)
            running = asyncio.create_task(node.run())
            try:
                yield api.kubeconfig()
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running


class _Node:
    """Runs the containers of the Deployment and of the pod of `helm test`, as a node does."""

    def __init__(self, client: Client, api: ApiServer, directory: Path) -> None:
        self.port = 0
        """The port of the gatekeeper."""
        self._client = client
        self._api = api
        self._directory = directory
        self._changed = asyncio.Event()
        self._deployments = Informer(client, DEPLOYMENTS, _Owner, namespace=SYSTEM_NAMESPACE)
        self._pods = Informer(client, PODS, _Owner, namespace=SYSTEM_NAMESPACE, label_selector=f"{_COMPONENT}=check")
        for informer in (self._deployments, self._pods):
            informer.add_handler(lambda _old, _new: self._changed.set())
        self._started = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._deployments.run())
            group.create_task(self._pods.run())
            checked = ""
            running, at_work = contextlib.AsyncExitStack(), self._wanted()
            try:
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    if (wanted := self._wanted()) != at_work:
                        at_work, old = wanted, running
                        running = await self._start(wanted)  # the old processes end when the new ones are ready
                        await old.aclose()
                    for pod in list(self._pods.all()):
                        if pod.status.get("phase") == "Running" and pod.metadata.uid != checked:
                            checked = pod.metadata.uid
                            group.create_task(self._check(pod))
            finally:
                await running.aclose()

    def _wanted(self) -> tuple[Container, ...]:
        found = self._deployments.get(SYSTEM_NAMESPACE, _NAME)
        if found is None or not found.spec["replicas"] or found.metadata.deletion_timestamp:
            return ()
        return _containers(found.spec["template"]["spec"])

    async def _start(self, containers: Sequence[Container]) -> contextlib.AsyncExitStack:
        stack = contextlib.AsyncExitStack()
        if not containers:
            return stack
        self._started += 1
        directory = self._directory / f"run-{self._started}"
        directory.mkdir()
        kubeconfig = await self._account(_NAME, directory)
        port, *health = free_ports(1 + len(containers))
        for (name, command, variables), health_port in zip(containers, health, strict=True):
            arguments = [part.replace("/certificates", str(directory)) for part in command[1:]]
            arguments += [f"--metrics-port={health_port}", f"--kubeconfig={kubeconfig}"]
            if name == "gatekeeper":
                arguments += [f"--port={port}", "--host=127.0.0.1", "--shutdown-delay=0"]
            if name == "reconciler":
                arguments += [
                    f"--start-timeout={START_TIMEOUT}",
                    f"--observe-seconds={OBSERVE_SECONDS}",
                    "--batch-wait=2",
                ]
            environment = os.environ | dict(variables)
            await stack.enter_async_context(
                Process([sys.executable, *arguments], directory / f"{name}.log", environment)
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(30):
                await until_ready(health)
        self.port = port
        return stack

    async def _check(self, pod: _Owner) -> None:
        ((_, command, _),) = _containers(pod.spec)
        kubeconfig = await self._account(pod.spec["serviceAccountName"], self._directory)
        log = self._directory / "check.log"
        async with Process([sys.executable, *command[1:], f"--kubeconfig={kubeconfig}"], log) as process:
            phase = "Succeeded" if await process.wait() == 0 else "Failed"
        metadata = pod.metadata
        await self._client.patch(
            PODS, {"status": {"phase": phase}}, metadata.name, metadata.namespace, subresource="status"
        )

    async def _account(self, name: str, directory: Path) -> Path:
        """A kubeconfig for a service account of the system namespace."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer: dict[str, Any] = await self._client.create(
            SERVICE_ACCOUNTS, request, SYSTEM_NAMESPACE, name=name, subresource="token"
        )
        kubeconfig = directory / f"{name}.kubeconfig"
        kubeconfig.write_text(self._api.kubeconfig(answer["status"]["token"]))
        return kubeconfig


def _containers(pod: dict[str, Any]) -> tuple[Container, ...]:
    return tuple(
        (
            each["name"],
            (*each["command"], *each["args"]),
            tuple((variable["name"], variable["value"]) for variable in each.get("env", ())),
        )
        for each in pod["containers"]
    )
