"""The namespaces that have a PodUnavailableBudget. The caches keep the pods and workloads of these namespaces only, to
save memory."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from altershield.api.budgets import PodUnavailableBudget
from kube_base.access.informer import Informer
from kube_base.access.queue import WorkQueue
from kube_base.errors import ReportedError

logger = logging.getLogger(__name__)

_WORKERS = 4
_SECONDS = 60.0
"""Seconds for the lists of one namespace. Without this limit, the list of a kind could wait forever if the definition
of the kind is deleted meanwhile."""


class BudgetNamespaces:
    """Fills the caches with the objects of a namespace when its first budget is created. Removes these objects when its
    last budget is deleted. `informers` returns the informers whose objects depend on `has_budget`."""

    def __init__(
        self, budgets: Informer[PodUnavailableBudget], informers: Callable[[], Iterable[Informer[Any]]]
    ) -> None:
        self._budgets = budgets
        self._informers = informers
        self._known: set[str] = set()
        self._first = asyncio.Event()
        self._filling: dict[str, asyncio.Event] = {}
        self._queue: WorkQueue[str] = WorkQueue()
        self._handlers: list[Callable[[str], None]] = []
        budgets.add_handler(self._changed)

    def has_budget(self, namespace: str) -> bool:
        return self._budgets.has_namespace(namespace)

    def is_filled(self, namespace: str) -> bool:
        """Whether the caches have all objects of the namespace. The result is valid once their first lists are
        complete."""
        return namespace not in self._filling

    async def wait_first(self) -> None:
        """Wait for the first budget of the cluster."""
        await self._first.wait()

    async def wait_filled(self, namespace: str) -> None:
        while (filling := self._filling.get(namespace)) is not None:
            await filling.wait()

    def add_handler(self, handler: Callable[[str], None]) -> None:
        """Call `handler(namespace)` when the caches have received all objects of a namespace."""
        self._handlers.append(handler)

    def announce(self) -> None:
        """Call the handlers for the namespaces that the first lists have filled. Call this once these lists are
        complete."""
        for namespace in self._known - self._filling.keys():
            self._call_handlers(namespace)

    def _call_handlers(self, namespace: str) -> None:
        for handler in self._handlers:
            handler(namespace)

    def _changed(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> None:
        namespace = (new or old).metadata.namespace  # type: ignore[union-attr]
        if new is not None and namespace not in self._known:
            self._known.add(namespace)
            self._first.set()
            if self._budgets.synced:  # else the first lists of the other informers are still to come
                self._filling[namespace] = asyncio.Event()
                self._queue.add(namespace)
        elif new is None and not self.has_budget(namespace):
            self._known.discard(namespace)
            self._end_filling(namespace)
            self._queue.add(namespace)

    def _end_filling(self, namespace: str) -> None:
        filling = self._filling.pop(namespace, None)
        if filling is not None:
            filling.set()

    async def run(self) -> None:
        """Work until cancelled. Errors of the API server are retried."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            namespace = await self._queue.get()
            try:
                async with asyncio.timeout(_SECONDS):
                    await self._fill_or_evict(namespace)
            except (ReportedError, TimeoutError) as error:
                logger.warning(
                    "cannot list the pods and workloads of a namespace with budgets; its pods cannot be deleted or"
                    " evicted until this succeeds",
                    extra={"namespace": namespace, "cause": str(error) or "the lists took too long"},
                )
                self._queue.add_rate_limited(namespace)
            else:
                self._queue.forget(namespace)
            finally:
                self._queue.done(namespace)

    async def _fill_or_evict(self, namespace: str) -> None:
        filling = self._filling.get(namespace)
        for informer in self._informers():
            if self.has_budget(namespace):
                await informer.refill(namespace)
            else:
                await informer.evict(namespace)
        if filling is not None and self._filling.get(namespace) is filling:
            self._end_filling(namespace)
            self._call_handlers(namespace)
