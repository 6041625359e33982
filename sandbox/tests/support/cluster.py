"""A simulated cluster, and a client with the rights of an administrator."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.resources import DEPLOYMENTS, Resource
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.simulation import simulated
from support.objects import template
from support.polling import HANG, until

Object = dict[str, Any]

SPACE = "demo"
SETTINGS = SimulationSettings(crash_back_off=0.05, pull_back_off=0.05, eviction=0.2)


class Cluster:
    """An API server. `simulation` adds nodes and controllers to it."""

    def __init__(self, kubeconfig: str, client: Client) -> None:
        self._kubeconfig = kubeconfig
        self.client = client

    def simulation(self, settings: SimulationSettings = SETTINGS) -> contextlib.AbstractAsyncContextManager[None]:
        return simulated(self._kubeconfig, settings)

    async def until(
        self, resource: Resource, met: Callable[[list[Object]], object], namespace: str = SPACE
    ) -> list[Object]:
        """Watch the objects of a resource until `met` is true for all of them; returns them."""
        async with asyncio.timeout(HANG):
            while True:
                found = await self.client.list(resource, namespace)
                items: list[Object] = found.items
                if met(items):
                    return items
                version = found.metadata.resource_version
                async with contextlib.aclosing(
                    self.client.watch(resource, namespace, resource_version=version)
                ) as events:
                    await anext(events)

    async def until_served(self, resource: Resource) -> None:
        """Wait until the API server serves a new custom resource."""

        async def served() -> bool:
            with contextlib.suppress(NotFoundError):
                await self.client.list(resource, SPACE)
                return True
            return False

        await until(served, f"{resource.plural} to be served")

    async def until_gone(self, resource: Resource, namespace: str = SPACE) -> None:
        await self.until(resource, lambda items: not items, namespace)

    async def release(self, replicas: int = 3, image: str = "busybox", **spec: Any) -> Object:
        """Create the Deployment `sleep`, or change its image."""
        body = {
            "metadata": {"name": "sleep"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "sleep"}},
                "template": template(image),
                **spec,
            },
        }
        try:
            return await self.client.patch(DEPLOYMENTS, body, "sleep", SPACE)
        except NotFoundError:
            return await self.client.create(DEPLOYMENTS, body, SPACE)

    async def until_released(self) -> Object:
        def released(items: list[Object]) -> bool:
            deployment = items[0]
            status, desired = deployment.get("status") or {}, deployment["spec"]["replicas"]
            return status.get("observedGeneration") == deployment["metadata"]["generation"] and (
                status.get("replicas", 0) == status.get("updatedReplicas", 0) == desired
                and status.get("availableReplicas", 0) == desired
            )

        return (await self.until(DEPLOYMENTS, released))[0]

    async def delete(self, resource: Resource, name: str, propagation: str = "") -> None:
        await self.client.delete(resource, name, SPACE, propagation=propagation)


def waiting(reason: str) -> Callable[[list[Object]], bool]:
    """Whether a container waits for this reason."""

    def met(pods: list[Object]) -> bool:
        return any(
            status["state"].get("waiting", {}).get("reason") == reason
            for pod in pods
            for status in pod.get("status", {}).get("containerStatuses", ())
        )

    return met
