"""The loop that every controller runs: take a key, bring the world in line with it, try again where that fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple, TypeVar

from kube_sandbox.client.errors import KubernetesError, NamespaceTerminatingError, ServerError, UnreachableError
from kube_sandbox.client.queue import WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


class Key(NamedTuple):
    namespace: str
    name: str


class NotYet(Exception):  # noqa: N818  (no error)
    """The work on a key cannot be finished now; it is taken up again, at growing intervals."""


async def work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], *, workers: int) -> None:
    """Until cancelled; up to `workers` keys at once. An error is logged and its key tried again, backing off."""
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_worker(queue, reconcile))


async def _worker(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]]) -> None:
    while True:
        key = await queue.get()
        try:
            await reconcile(key)
        except NamespaceTerminatingError:  # whatever is refused for this reason goes away with its namespace
            queue.forget(key)
        except KubernetesError as error:
            # What the API refuses is told where it belongs: in Events and conditions.
            level = logging.WARNING if isinstance(error, UnreachableError | ServerError) else logging.DEBUG
            logger.log(level, "trying again later", extra={"key": str(key), "error": str(error)})
            queue.add_rate_limited(key)
        except NotYet as pending:
            logger.debug("not finished yet", extra={"key": str(key), "cause": str(pending)})
            queue.add_rate_limited(key)
        except Exception:
            logger.exception("a controller failed, trying again later", extra={"key": str(key)})
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
        finally:
            queue.done(key)
