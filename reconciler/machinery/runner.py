"""The loop that every controller runs in: take a key, reconcile it, come back when asked to or when it failed."""

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


K = TypeVar("K", bound=tuple[str, ...])


Reconcile = Callable[[K], Awaitable[float | None]]
"""Brings the cluster closer to what it should be for one key; in how many seconds to look again, or None."""


async def work(name: str, queue: WorkQueue[K], reconcile: Reconcile[K], metrics: Metrics) -> None:
    """One worker: reconcile keys until cancelled. No failure of one key stops the others, and however many keys wait,
    they hold the loop for one turn at a time."""
    slices = time_slices()
    while True:
        key = await queue.get()
        began = time.perf_counter()
        try:
            outcome = await _reconcile_once(name, queue, reconcile, key)
            metrics.reconciles.labels(name, outcome).inc()
            metrics.reconcile_duration.labels(name).observe(time.perf_counter() - began)
        except asyncio.CancelledError:
            queue.add(key)  # it may have been cut off half done; if this process leads again, it goes on
            raise
        finally:
            queue.done(key)
        await slices.yield_if_over()


async def _reconcile_once(name: str, queue: WorkQueue[K], reconcile: Reconcile[K], key: K) -> Outcome:
    try:
        requeue_after = await reconcile(key)
    except (ConflictError, NotFoundError, NamespaceTerminatingError) as error:
        # somebody was faster, or our cache is behind: the watch brings the news
        queue.add_rate_limited(key)
        logger.debug("will decide again", extra=_log_fields(name, key, error))
        return Outcome.CONFLICT
    except TooManyRequestsError as error:
        queue.add_throttled(key, error.retry_after)
        return Outcome.THROTTLED
    except KubernetesError as error:
        queue.add_rate_limited(key)
        logger.warning("could not reconcile, trying again", extra=_log_fields(name, key, error))
        return Outcome.ERROR
    except Exception as error:
        queue.add_rate_limited(key)
        logger.exception("could not reconcile, trying again", extra=_log_fields(name, key, error))
        return Outcome.ERROR
    queue.forget(key)
    if requeue_after is not None:
        queue.add_after(key, requeue_after)
    return Outcome.DONE


def _log_fields(name: str, key: tuple[str, ...], error: Exception) -> dict[str, str]:
    return {"controller": name, "namespace": key[-2], "object": "/".join((*key[:-2], key[-1])), "cause": str(error)}
