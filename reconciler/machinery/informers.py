"""Runs the informers in the order in which they depend on each other."""

import asyncio
import contextlib
from typing import Any

from altershield.kube.informer import Informer
from reconciler.machinery.caches import Caches


async def run_informers(caches: Caches) -> None:
    """Run all informers until cancelled.

    Namespaces and settings come first, because they decide which other objects are kept. Informers of kinds that a
    cluster may lack run only while the CustomResourceDefinition exists.
    """
    first = (caches.namespaces, caches.settings)
    async with asyncio.TaskGroup() as group:
        for informer in first:
            group.create_task(informer.run())
        for informer in first:
            await informer.wait_synced()
        for each in caches.required:
            if each not in first:
                group.create_task(each.run())
        for kind in caches.definitions:
            group.create_task(_while_defined(caches, kind))


async def _while_defined(caches: Caches, kind: str) -> None:
    """Run the informer of a kind of workload while its CustomResourceDefinition exists."""
    definition, workloads = caches.definitions[kind], caches.workloads[kind]
    changed = asyncio.Event()
    definition.add_handler(lambda old, new: changed.set())
    running: asyncio.Task[None] | None = None
    await definition.wait_synced()
    try:
        while True:
            changed.clear()
            if caches.defined(kind) and running is None:
                running = asyncio.create_task(workloads.run())
            elif not caches.defined(kind) and running is not None:
                await _cancel(running)
                running = None
                await _evict_all(workloads)
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
