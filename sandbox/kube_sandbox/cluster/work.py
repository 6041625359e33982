"""The worker loop of every controller: take a key, reconcile it, retry after an error."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple, TypeVar

from kube_base.access.errors import (
    KubernetesError,
    NamespaceTerminatingError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
)
from kube_base.access.queue import WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class Key(NamedTuple):
    namespace: str
    name: str


class NotYet(Exception):  # noqa: N818  (not an error)
    """The reconciliation of a key cannot finish now; it is retried with growing delays."""


async def work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], *, workers: int) -> None:
    """Reconcile up to `workers` keys concurrently, until cancelled. An error is logged, and its key is retried with
    growing delays."""
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_worker(queue, reconcile))


async def _worker(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]]) -> None:
    while True:
        key = await queue.get()
        try:
            await reconcile(key)
        except NamespaceTerminatingError:  # the workload will be deleted with its namespace
            queue.forget(key)
        except KubernetesError as error:
            # The controllers report refusals of the API server in Events and conditions.
            level = (
                logging.WARNING
                if isinstance(error, UnreachableError | ServerError | TooManyRequestsError)
                else logging.DEBUG
            )
            logger.log(level, "reconciliation failed, retrying", extra={"key": str(key), "error": str(error)})
            queue.add_rate_limited(key)
        except NotYet as pending:
            logger.debug("not finished yet", extra={"key": str(key), "cause": str(pending)})
            queue.add_rate_limited(key)
        except Exception:
            logger.exception("unexpected error in a controller, retrying", extra={"key": str(key)})
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
        finally:
            queue.done(key)
