"""Helpers to run informers on a stub of the API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.projections import Pod
from tests.support.stub_api import StubApi, serving


def pod(name: str, namespace: str = "shop", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def names(informer: Informer[Any]) -> list[str]:
    return sorted(obj.metadata.name for obj in informer.all())


@asynccontextmanager
async def informing(
    *names: str, streaming_lists: bool = False, **options: Any
) -> AsyncIterator[tuple[StubApi, Informer[Pod]]]:
    """An API server that has pods with these names, and an informer of pods. `options` are those of the informer."""
    async with serving(streaming_lists=streaming_lists) as (api, client):
        for name in names:
            await api.put(PODS, pod(name))
        yield api, Informer(client, PODS, Pod, **options)


@asynccontextmanager
async def started(informer: Informer[Any]) -> AsyncIterator[None]:
    """Run the informer without waiting for its first list."""
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncIterator[None]:
    """Run the informer, after its first list is complete."""
    async with started(informer):
        await asyncio.wait_for(informer.wait_synced(), 120)
        yield
