"""Stores the records of admitted disruptions in the status of their budgets.

For each budget, a gatekeeper has one write under way at a time. Requests that arrive meanwhile share the next write. So
many requests cause few writes, and writes of gatekeepers seldom conflict.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from altershield.api.budgets import Operation, PodUnavailableBudget
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets.decision import charge
from altershield.budgets.records import without_record
from altershield.budgets.steps import Disruption
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, KubernetesError, NotFoundError
from gatekeeper.budgets.lister import BudgetLister

logger = logging.getLogger(__name__)

_WRITE_SECONDS = 2.5


class Stored(NamedTuple):
    """A record was stored in this version of the budget. `sole`: the record is new, and no other request of this
    process asked for it. So no other request has passed because of it."""

    budget: PodUnavailableBudget
    sole: bool


Outcome = Stored | KubernetesError | None
"""None: the request has to be decided again, because the budget has changed."""

_Waiting = tuple[Disruption, asyncio.Future[Outcome]]


class Writer:
    """`now` is the API server's clock."""

    def __init__(self, client: Client, caches: BudgetCaches, lister: BudgetLister, now: Callable[[], float]) -> None:
        self._client = client
        self._caches = caches
        self._lister = lister
        self._now = now
        self._waiting: dict[str, list[_Waiting]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def store(self, budget: PodUnavailableBudget, disruption: Disruption) -> Outcome:
        """Store the record of a disruption, if the newest version of the budget still admits it."""
        uid = budget.metadata.uid
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(uid, []).append((disruption, future))
        if uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._run(budget))
        return await future

    async def remove(self, stored: Stored, uid: str, operation: Operation) -> None:
        """Remove a record because another budget refused the request. If the budget has changed since, the record stays
        until it expires, because another request may have passed because of it."""
        budget = stored.budget
        status = without_record(budget.status, uid, operation)
        try:
            await self._replace(msgspec.structs.replace(budget, status=status))
        except KubernetesError as error:
            logger.info("the record of a refused request stays until it expires", extra={"cause": str(error)})

    async def _run(self, budget: PodUnavailableBudget) -> None:
        uid = budget.metadata.uid
        try:
            while self._waiting.get(uid):
                batch = self._waiting.pop(uid)
                try:
                    outcomes = await self._write(budget, batch)
                except KubernetesError as error:
                    outcomes = [error] * len(batch)
                except Exception as error:
                    logger.exception("cannot write the status of a budget")
                    outcomes = [KubernetesError(str(error))] * len(batch)
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if not future.done():
                        future.set_result(outcome)
        finally:
            del self._tasks[uid]

    async def _write(self, budget: PodUnavailableBudget, batch: list[_Waiting]) -> list[Outcome]:
        metadata = budget.metadata
        found = self._caches.budgets_informer.get(metadata.namespace, metadata.name)
        if found is None or found.metadata.uid != metadata.uid:
            return [None] * len(batch)
        disruptions = [disruption for disruption, _ in batch]
        status, recorded = charge(found, disruptions, self._lister, self._now())
        if not any(recorded):
            return [None] * len(batch)
        try:
            stored = await self._replace(msgspec.structs.replace(found, status=status))
        except ConflictError:
            await self._refresh(found)
            return [None] * len(batch)
        except NotFoundError:
            self._lister.gone.add(metadata.uid)
            return [None] * len(batch)
        uids = [disruption.pod.uid for disruption in disruptions]
        known = found.status.disrupted_pods.keys() | found.status.unavailable_pods.keys()
        return [
            Stored(stored, uids.count(uid) == 1 and uid not in known) if is_recorded else None
            for uid, is_recorded in zip(uids, recorded, strict=True)
        ]

    async def _replace(self, budget: PodUnavailableBudget) -> PodUnavailableBudget:
        metadata = budget.metadata
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                stored = await self._client.replace(
                    POD_UNAVAILABLE_BUDGETS,
                    budget,
                    metadata.name,
                    metadata.namespace,
                    subresource="status",
                    as_=PodUnavailableBudget,
                )
        except TimeoutError as error:
            raise KubernetesError(f"the API server took longer than {_WRITE_SECONDS:g} s") from error
        self._caches.budgets_informer.observe(stored)
        return stored

    async def _refresh(self, budget: PodUnavailableBudget) -> None:
        """Read the budget from the API server after a conflict."""
        metadata = budget.metadata
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                found = await self._client.get(
                    POD_UNAVAILABLE_BUDGETS, metadata.name, metadata.namespace, as_=PodUnavailableBudget
                )
        except NotFoundError:
            self._lister.gone.add(metadata.uid)
            return
        except TimeoutError as error:
            raise KubernetesError(f"the API server took longer than {_WRITE_SECONDS:g} s") from error
        if found.metadata.uid != metadata.uid:
            self._lister.gone.add(metadata.uid)
        self._caches.budgets_informer.observe(found)
