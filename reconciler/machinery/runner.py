"""The loop of every controller: take a key from the queue, reconcile it, and put it back after an error or a delay."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from altershield.process.logs import RECONCILE
from kube_base.access.errors import (
    ConflictError,
    KubernetesError,
    NamespaceTerminatingError,
    NotFoundError,
    TooManyRequestsError,
)
from kube_base.access.queue import WorkQueue
from kube_base.access.time_slices import time_slices
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.outcome import Outcome

logger = logging.getLogger(__name__)


K = TypeVar("K", bound=tuple[object, ...])


Reconcile = Callable[[K], Awaitable[float | None]]
"""Brings the cluster closer to the desired state of one key. Returns the seconds after which the key is reconciled
again, or None."""

_ids = itertools.count(1)  # of reconciles, for the log


async def work(name: str, queue: WorkQueue[K], reconcile: Reconcile[K], metrics: Metrics, *, at_most: int = 1) -> None:
    """Reconcile keys until cancelled, with at most `at_most` workers. The keys that wait now are the backlog.

    A worker that takes a key starts the next worker, if no other worker waits. So thousands of idle workers are not
    started and stopped. A failure of one key does not stop the workers. After each time slice, a worker lets other
    tasks run.
    """
    queue.to_backlog()
    controller = _Controller(name, queue, reconcile)
    slices = time_slices()
    started = waiting = 0

    async def worker() -> None:
        nonlocal waiting
        while True:
            key = await queue.get()
            waiting -= 1
            if not waiting and started < at_most:
                start()
            RECONCILE.set(str(next(_ids)))
            try:
                await slices.yield_if_over()  # many waiting workers may get a key in the same iteration of the loop
                began = time.perf_counter()
                outcome = await controller.reconcile_once(key)
                metrics.reconciles.labels(name, outcome).inc()
                metrics.reconcile_duration.labels(name).observe(time.perf_counter() - began)
            except asyncio.CancelledError:
                queue.add(key)  # the reconcile may be incomplete: finish it if this process leads again
                raise
            finally:
                queue.done(key)
                RECONCILE.set("")
            waiting += 1

    async with asyncio.TaskGroup() as group:

        def start() -> None:
            nonlocal started, waiting
            started, waiting = started + 1, waiting + 1
            group.create_task(worker())

        start()


class _Controller(Generic[K]):
    """Reconciles single keys. Adds them to the queue again, and logs failures."""

    def __init__(self, name: str, queue: WorkQueue[K], reconcile: Reconcile[K]) -> None:
        self._name = name
        self._queue = queue
        self._reconcile = reconcile
        self._reported: dict[K, str] = {}
        """By key: the logged cause of a failure that lasts until an object changes."""

    async def reconcile_once(self, key: K) -> Outcome:
        queue = self._queue
        try:
            requeue_after = await self._reconcile(key)
        except (ConflictError, NotFoundError, NamespaceTerminatingError) as error:
            # the object changed meanwhile, or the cache is behind: the watch brings the new state
            queue.add_rate_limited(key)
            logger.debug("conflict, reconciling again", extra=self._log_fields(key, error))
            return Outcome.CONFLICT
        except TooManyRequestsError as error:
            queue.add_throttled(key, error.retry_after)
            return Outcome.THROTTLED
        except KubernetesError as error:
            if error.may_heal:
                queue.add_rate_limited(key)
                logger.warning("could not reconcile the object, retrying", extra=self._log_fields(key, error))
            else:
                queue.add_slowly(key)
                self._report_once(key, error)
            return Outcome.ERROR
        except Exception as error:
            queue.add_rate_limited(key)
            logger.exception("could not reconcile the object, retrying", extra=self._log_fields(key, error))
            return Outcome.ERROR
        queue.forget(key)
        self._reported.pop(key, None)
        if requeue_after is not None:
            queue.add_after(key, requeue_after)
        return Outcome.DONE

    def _report_once(self, key: K, error: KubernetesError) -> None:
        """Log a failure that lasts until an object changes: as a warning if its cause is new."""
        cause = str(error)
        logger.log(
            logging.DEBUG if self._reported.get(key) == cause else logging.WARNING,
            "could not reconcile the object, and retrying does not help: correct what the cause names; the object is"
            " reconciled again when it changes, and about once a minute",
            extra=self._log_fields(key, error),
        )
        self._reported[key] = cause

    def _log_fields(self, key: K, error: Exception) -> dict[str, str]:
        *kinds, namespace, obj = map(str, key)
        name = "/".join((*kinds, obj))
        return {"controller": self._name, "namespace": namespace, "object": name, "cause": str(error)}
