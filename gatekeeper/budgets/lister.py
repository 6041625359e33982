"""The objects that decisions about disruptions read: those of the caches, and pods that were listed because the cache
was too old."""

import asyncio
from collections.abc import Sequence

from altershield.api.budgets import PodUnavailableBudget
from altershield.budget_caches.caches import BudgetCaches
from altershield.budgets import pods
from altershield.budgets.coverage import Scales, as_query
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Counted, counted
from altershield.budgets.pods import Pod
from kube_base.access.client import Client
from kube_base.meta import version_number
from kube_base.resources import PODS

_WATCH_SECONDS = 0.3
"""The time in which the watch usually brings the pods that another process has seen already."""
_POLL_SECONDS = 0.005


class BudgetLister:
    """Implements `altershield.budgets.decision.Lister`."""

    def __init__(self, client: Client, caches: BudgetCaches) -> None:
        self._client = client
        self._caches = caches
        self._listed: dict[str, tuple[int, PodIndex]] = {}
        """By the uid of a budget: the resourceVersion of the list of its pods, and the pods."""
        self._listing: dict[str, asyncio.Task[None]] = {}
        """By the uid of a budget: the list that is under way."""
        self._gone: set[str] = set()
        """The uids of budgets that do not exist although the cache has them."""
        caches.budgets_informer.add_handler(self._on_budget)

    def _on_budget(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._gone.discard(old.metadata.uid)

    def leave_out(self, budget: PodUnavailableBudget) -> None:
        """Leave out this budget until the cache does not have it any more: the API server does not have it."""
        uid = budget.metadata.uid
        if any(each.metadata.uid == uid for each in self._caches.budgets(budget.metadata.namespace)):
            self._gone.add(uid)

    def scales(self, namespace: str) -> Scales:
        return self._caches.scales.of(namespace)

    @property
    def seen(self) -> int:
        return self._caches.seen

    def is_terminating(self, namespace: str) -> bool:
        return self._caches.is_terminating(namespace)

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        found = self._caches.budgets(namespace)
        return [each for each in found if each.metadata.uid not in self._gone] if self._gone else found

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._caches.pod(namespace, name)

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        listed = self._listed.get(budget.metadata.uid)
        if listed is not None:
            version, index = listed
            if version > self.seen:
                namespace = budget.metadata.namespace
                return counted(budget, index.groups(namespace), self.scales(namespace)), version
            del self._listed[budget.metadata.uid]
        return self._caches.counted(budget)

    def blocking_pdb(self, pod: Pod) -> str:
        return self._caches.blocking_pdb(pod)

    async def pods_up_to(self, budget: PodUnavailableBudget, version: int) -> None:
        """Wait until the watch brings the pods up to this resourceVersion. If it does not in time, list the pods of the
        budget. KubernetesError or msgspec.DecodeError: they cannot be listed."""
        uid = budget.metadata.uid
        for _ in range(int(_WATCH_SECONDS / _POLL_SECONDS)):
            if self.seen >= version or self._listed.get(uid, (0,))[0] >= version:
                return
            await asyncio.sleep(_POLL_SECONDS)
        if uid not in self._listing:
            task = asyncio.create_task(self._list(budget))
            self._listing[uid] = task
            task.add_done_callback(lambda _: self._listing.pop(uid, None))
        await asyncio.shield(self._listing[uid])

    async def _list(self, budget: PodUnavailableBudget) -> None:
        namespace = budget.metadata.namespace
        selector = as_query(budget.spec.selector) if budget.spec.selector is not None else ""
        version, index = 0, PodIndex()
        async for page in self._client.pages(PODS, namespace, label_selector=selector):
            version = version_number(page.metadata.resource_version)
            for item in page.items:
                index.put(None, pods.read(item))
        self._listed = {uid: each for uid, each in self._listed.items() if each[0] > self.seen}
        self._listed[budget.metadata.uid] = (version, index)
