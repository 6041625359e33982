"""The garbage collector, beside caches of hundreds of thousands of objects that stay."""

import asyncio
import gc

from reconciler.machinery.caches import Caches

_COLLECT_AFTER = 10_000  # objects more than before
_INTERVAL = 0.5  # seconds


async def freeze_caches(caches: Caches) -> None:
    """Keep the collector off what fills the caches: a walk over all of it would hold the event loop for hundreds of
    milliseconds, to find nothing. It looks after what comes later."""
    gc.set_threshold(_COLLECT_AFTER)
    gc.freeze()
    while not all(informer.synced for informer in caches.required):
        await asyncio.sleep(_INTERVAL)
        gc.freeze()
