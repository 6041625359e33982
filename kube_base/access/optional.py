"""Runs the informer of a kind that a cluster may lack, while its CustomResourceDefinition exists."""

import asyncio
import contextlib
from typing import Any

import msgspec

from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.meta import ObjectMeta
from kube_base.resources import CRDS


class Definition(msgspec.Struct, frozen=True):
    """The projection of a CustomResourceDefinition."""

    metadata: ObjectMeta


def definition_informer(client: Client, name: str) -> Informer[Definition]:
    """An informer of the CustomResourceDefinition `name`."""
    return Informer(
        client,
        CRDS,
        Definition,
        field_selector=f"metadata.name={name}",
        metadata_only=True,
        name=f"{CRDS.plural}-{name.partition('.')[0]}",
    )


async def run_while_defined(definition: Informer[Any], informer: Informer[Any]) -> None:
    """Run `informer` while the cache of `definition` has an object, until cancelled. Otherwise, its cache is empty."""
    changed = asyncio.Event()
    definition.add_handler(lambda old, new: changed.set())
    running: asyncio.Task[None] | None = None
    await definition.wait_synced()
    try:
        while True:
            changed.clear()
            if len(definition) and running is None:
                running = asyncio.create_task(informer.run())
            elif not len(definition) and running is not None:
                await _cancel(running)
                running = None
                await _evict_all(informer)
            await changed.wait()
    finally:
        if running is not None:
            await _cancel(running)


async def _evict_all(informer: Informer[Any]) -> None:
    """Remove all objects from the cache: the API server deleted them together with their definition."""
    for namespace in {obj.metadata.namespace for obj in informer.all()}:
        await informer.evict(namespace)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
