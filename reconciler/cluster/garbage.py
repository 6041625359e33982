"""Settings of Python's garbage collector for a process with large, long-lived caches."""

import asyncio
import gc

from reconciler.cluster.caches import Caches

_COLLECT_AFTER = 10_000  # new objects
_INTERVAL = 0.5  # seconds


async def freeze_caches(caches: Caches) -> None:
    """Exclude the cached objects from garbage collection. This is repeated until all caches are filled.

    A collection that visits all cached objects blocks the event loop for hundreds of milliseconds and frees nothing.
    Objects that are created after that are collected as usual.
    """
    gc.set_threshold(_COLLECT_AFTER)
    gc.freeze()
    while not all(informer.synced for informer in (*caches.required, *caches.budgets.begun_informers)):
        await asyncio.sleep(_INTERVAL)
        gc.freeze()
