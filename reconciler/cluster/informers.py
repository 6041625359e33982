"""Runs the informers in the order in which they depend on each other."""

import asyncio

from kube_base.access.optional import run_while_defined
from reconciler.cluster.caches import Caches


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
        group.create_task(caches.budgets.run())
        for each in caches.required:
            if each not in (*first, *caches.budgets.required) or each in caches.definitions.values():
                group.create_task(each.run())
        for kind, definition in caches.definitions.items():
            group.create_task(run_while_defined(definition, caches.workloads[kind]))
