"""The worker of a controller on uvloop, the event loop of production."""

import asyncio

import uvloop

from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import work
from tests.support.polling import until

KEY: Key = ("shop", "sleep")


def test_key_added_while_its_requeue_is_due_does_not_stop_the_worker() -> None:
    async def main() -> int:
        queue: WorkQueue[Key] = WorkQueue()
        turns = 0

        async def reconcile(key: Key) -> float | None:
            nonlocal turns
            turns += 1
            if turns < 3:
                queue.add(key)
                return 0.0001
            return None

        working = asyncio.create_task(work("pods", queue, reconcile, Metrics()))
        queue.add(KEY)
        await until(lambda: turns >= 3 or working.done(), "the third turn")
        assert not working.done()
        working.cancel()
        await asyncio.wait((working,))
        return turns

    assert uvloop.run(main()) >= 3
