"""Records the watch of the pods of a namespace."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from bench.availability.observer import PodEvent
from bench.harness.waiting import until
from kube_base.access.client import Client
from kube_base.resources import PODS


class PodsWatch:
    """The events of the pods of a namespace while `following` is active."""

    def __init__(self, admin: Client, namespace: str) -> None:
        self.events: list[PodEvent] = []
        self._admin, self._namespace = admin, namespace
        self._read = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def following(cls, admin: Client, namespace: str) -> AsyncIterator["PodsWatch"]:
        """Record the events until the block ends. Call this before the first pod is created."""
        watch = cls(admin, namespace)
        watch._read = int((await admin.list(PODS, namespace)).metadata.resource_version)
        reading = asyncio.create_task(watch._run())
        try:
            yield watch
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            async for event in self._admin.watch(PODS, self._namespace, resource_version=str(self._read)):
                read = PodEvent(event.type, msgspec.json.decode(event.object))
                self._read = max(self._read, read.version)
                if event.type != "BOOKMARK":
                    self.events.append(read)

    async def until_now(self) -> None:
        """Wait until the watch has come to the event of a pod that is created now."""
        probe = {"metadata": {"name": "last"}, "spec": {"containers": [{"name": "app", "image": "busybox"}]}}
        made: dict[str, Any] = await self._admin.create(PODS, probe, self._namespace)
        await until(lambda: self._read >= int(made["metadata"]["resourceVersion"]), "the last event")
