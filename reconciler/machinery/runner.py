"""The loop of every controller: take a key from the queue, reconcile it, and put it back after an error or a delay."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from altershield.kube.errors import (
    ConflictError,
    KubernetesError,
    NamespaceTerminatingError,
    NotFoundError,
    TooManyRequestsError,
)
from altershield.kube.queue import WorkQueue
from altershield.kube.time_slices import time_slices
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.outcome import Outcome

logger = logging.getLogger(__name__)


K = TypeVar("K", bound=tuple[object, ...])


Reconcile = Callable[[K], Awaitable[float | None]]
"""Brings the cluster closer to the desired state of one key. Returns the seconds after which the key is reconciled
again, or None."""


async def work(name: str, queue: WorkQueue[K], reconcile: Reconcile[K], metrics: Metrics, *, at_most: int = 1) -> None:
    """Reconcile keys until cancelled, with at most `at_most` workers.

    One worker waits for the next key. When it takes a key and no other worker waits, it starts another worker: to start
    and to stop thousands of waiting workers would take as long as many reconciles. A failure of one key does not stop
    the workers. A worker gives way to other tasks after each time slice, however many keys wait.
    """
    slices = time_slices()
    started = waiting = 0

    async def worker() -> None:
        nonlocal waiting
        while True:
            key = await queue.get()
            waiting -= 1
            if not waiting and started < at_most:
                start()
            try:
                await slices.yield_if_over()  # many waiting workers may get a key in the same iteration of the loop
                began = time.perf_counter()
                outcome = await _reconcile_once(name, queue, reconcile, key)
                metrics.reconciles.labels(name, outcome).inc()
                metrics.reconcile_duration.labels(name).observe(time.perf_counter() - began)
            except asyncio.CancelledError:
                queue.add(key)  # the reconcile may be incomplete: finish it if this process leads again
                raise
            finally:
                queue.done(key)
            waiting += 1

    async with asyncio.TaskGroup() as group:

        def start() -> None:
            nonlocal started, waiting
            started, waiting = started + 1, waiting + 1
            group.create_task(worker())

        start()


async def _reconcile_once(name: str, queue: WorkQueue[K], reconcile: Reconcile[K], key: K) -> Outcome:
    try:
        requeue_after = await reconcile(key)
    except (ConflictError, NotFoundError, NamespaceTerminatingError) as error:
        # the object changed meanwhile, or the cache is behind: the watch brings the new state
        queue.add_rate_limited(key)
        logger.debug("conflict, reconciling again", extra=_log_fields(name, key, error))
        return Outcome.CONFLICT
    except TooManyRequestsError as error:
        queue.add_throttled(key, error.retry_after)
        return Outcome.THROTTLED
    except KubernetesError as error:
        queue.add_rate_limited(key)
        logger.warning("could not reconcile the object, retrying", extra=_log_fields(name, key, error))
        return Outcome.ERROR
    except Exception as error:
        queue.add_rate_limited(key)
        logger.exception("could not reconcile the object, retrying", extra=_log_fields(name, key, error))
        return Outcome.ERROR
    queue.forget(key)
    if requeue_after is not None:
        queue.add_after(key, requeue_after)
    return Outcome.DONE


def _log_fields(name: str, key: tuple[object, ...], error: Exception) -> dict[str, str]:
    *kinds, namespace, obj = map(str, key)
    return {"controller": name, "namespace": namespace, "object": "/".join((*kinds, obj)), "cause": str(error)}
