"""Decides about a disruption by the budgets of the pod, and does the I/O that the decision needs."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from altershield.api.budgets import BudgetMode, PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budget_caches.caches import BudgetCaches
from altershield.budget_caches.live_pods import read_pod
from altershield.budgets import texts
from altershield.budgets.decision import step
from altershield.budgets.operations import protected_operation
from altershield.budgets.overlap import overlap
from altershield.budgets.pods import Pod
from altershield.budgets.steps import AwaitPods, Disruption, Passed, ReadOwners, Refused, Reserve
from altershield.workloads.meta import Owner
from gatekeeper.budgets.lister import BudgetLister
from gatekeeper.budgets.recording import Recorded, record, remove
from gatekeeper.records.shared_status import SharedStatus
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.errors import ReportedError

logger = logging.getLogger(__name__)

_SECONDS = 3.0  # for one request
_MAX_OWNERS = 32  # read in one step
_STEPS = 50  # for one request


class Busy(NamedTuple):
    """There was no decision in time. `message`: the text of the refusal; empty: that of a busy budget."""

    message: str


Verdict = Passed | Refused | Busy


class _Records(NamedTuple):
    """The records of one request so far."""

    budgets: dict[str, PodUnavailableBudget | None]
    """By uid: the budgets that have a record. None: another request may rely on the record too."""
    excesses: list[str]
    """Why budgets would have refused the request without break glass."""


class Budgets(Protocol):
    """The budgets, as handlers see them. Only `read_pod` and `judge` send requests to the API server."""

    def filled(self, namespace: str) -> bool:
        """Whether `judge` can decide about disruptions in the namespace."""

    def protects(self, namespace: str) -> bool:
        """Whether a budget of this namespace is in force."""

    def overlapping(self, namespace: str, spec: PodUnavailableBudgetSpec) -> str:
        """The overlap of a new budget with another one, as `NAME has the same target`; empty: there is none."""

    def cached_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod from the cache. None: call `read_pod`, because the cache does not have the pod, or because the cached
        pod is not available and its owner may have replaced it by a pod of the same name."""

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod from the API server. KubernetesError: it cannot be read."""

    def decide(self, disruption: Disruption) -> Passed | Refused | None:
        """Decide by the caches alone, which is possible for most requests. None: call `judge`."""

    async def judge(self, disruption: Disruption) -> Verdict:
        """Read what the caches lack, decide, and record the disruption if it passes. A dry run is not recorded."""


class Judge:
    """`now` is the API server's clock."""

    def __init__(self, client: Client, caches: BudgetCaches, now: Callable[[], float]) -> None:
        self._client = client
        self._caches = caches
        self._lister = BudgetLister(client, caches)
        self._now = now
        self._shared: SharedStatus[PodUnavailableBudget, Disruption, Recorded | None] = SharedStatus(
            client,
            caches.budgets_informer,
            PodUnavailableBudget,
            lambda budget, disruptions: record(budget, disruptions, self._lister, now()),
        )
        self._filled = False

    def filled(self, namespace: str) -> bool:
        if self._filled:
            return True
        caches = self._caches
        if not all(informer.synced for informer in caches.required):
            return False
        self._filled = caches.is_listed
        # If the namespace has just got its first budget, `judge` waits for its pods. While the process starts, the
        # failure policy of the webhook decides.
        return self._filled or not self.protects(namespace) or not caches.namespaces.is_filled(namespace)

    def protects(self, namespace: str) -> bool:
        return self._caches.namespaces.has_budget(namespace)

    def overlapping(self, namespace: str, spec: PodUnavailableBudgetSpec) -> str:
        caches = self._caches
        return overlap(spec, caches.budgets(namespace), caches.index.groups(namespace), caches.scales.of(namespace))

    def cached_pod(self, namespace: str, name: str) -> Pod | None:
        cached = self._caches.pod(namespace, name)
        return cached if cached is not None and (cached.available or not cached.owner.reuses_names) else None

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        return await read_pod(self._client, namespace, name)

    def decide(self, disruption: Disruption) -> Passed | Refused | None:
        if not self._filled or not self._caches.namespaces.is_filled(disruption.pod.namespace):
            return None
        found = step(disruption, self._lister, self._now())
        if isinstance(found, Refused) or (isinstance(found, Passed) and not self._may_be_replaced(disruption.pod)):
            return found
        return None

    def _may_be_replaced(self, pod: Pod) -> bool:
        """Whether the pod may be an older one of this name: it comes from the cache, as for an eviction or a restart,
        and its owner gives new pods the names of old ones."""
        return pod.owner.reuses_names and pod is self._caches.pod(pod.namespace, pod.name)

    async def judge(self, disruption: Disruption) -> Verdict:
        pod = disruption.pod
        records = _Records({}, [])
        try:
            async with asyncio.timeout(_SECONDS):
                if self._caches.budgets(disruption.pod.namespace):
                    await self._caches.wait_filled(disruption.pod.namespace)  # this may be its first budget
                if self._may_be_replaced(pod):
                    live = await read_pod(self._client, pod.namespace, pod.name)
                    if live is None:
                        return Passed()  # the API server answers with 404
                    disruption = msgspec.structs.replace(disruption, pod=live)
                verdict = await self._decided(disruption, records)
        except TimeoutError:
            filled = self._caches.is_filled(disruption.pod.namespace)
            verdict = Busy("" if filled else texts.unread())
        except ReportedError as error:
            logger.warning("cannot read a pod", extra={"cause": str(error)})
            verdict = Busy(texts.unread())
        if not isinstance(verdict, Passed):
            self._remove_records(disruption, records)
        if isinstance(verdict, Busy):
            return self._without_decision(disruption, verdict)
        return verdict

    async def _decided(self, disruption: Disruption, records: _Records) -> Verdict:
        for _ in range(_STEPS):
            found = step(disruption, self._lister, self._now(), reserved=frozenset(records.budgets))
            busy: Busy | None = None
            match found:
                case Passed() if records.excesses:
                    excesses = map(texts.passed_by_break_glass, records.excesses)
                    return found._replace(warnings=(*excesses, *found.warnings), broken_glass=True)
                case Passed() | Refused():
                    return found
                case ReadOwners(owners):
                    busy = await self._read_owners(owners[:_MAX_OWNERS], disruption.pod.namespace)
                case AwaitPods(budget, version):
                    busy = await self._await_pods(budget, version)
                case Reserve(budget):
                    busy = await self._record(budget, disruption, records)
            if busy is not None:
                return busy
        return Busy("")

    async def _read_owners(self, owners: Sequence[Owner], namespace: str) -> Busy | None:
        try:
            await asyncio.gather(*(self._caches.scales.read(owner, namespace) for owner in owners))
        except ReportedError as error:
            logger.warning("cannot read the owner of a pod", extra={"cause": str(error)})
            return Busy(texts.unread())
        return None

    async def _await_pods(self, budget: PodUnavailableBudget, version: int) -> Busy | None:
        try:
            await self._lister.pods_up_to(budget, version)
        except (ReportedError, msgspec.DecodeError) as error:
            logger.warning("cannot list the pods of a budget", extra={"cause": str(error)})
            return Busy(texts.unknown(budget.metadata.name))
        return None

    async def _record(self, budget: PodUnavailableBudget, disruption: Disruption, records: _Records) -> Busy | None:
        """Store a record, if the newest version of the budget still admits the request."""
        try:
            answered = await self._shared.ask(budget.metadata, disruption)
        except KubernetesError as error:
            logger.warning("cannot write the status of a budget", extra={"cause": str(error)})
            return Busy(texts.busy(budget.metadata.name))
        if answered is None:
            self._lister.leave_out(budget)
        elif answered.answer is not None and answered.stored is not None:
            stored, recorded = answered.stored, answered.answer
            records.budgets[stored.metadata.uid] = stored if recorded.sole else None
            if recorded.excess:
                records.excesses.append(recorded.excess)
        return None

    def _without_decision(self, disruption: Disruption, busy: Busy) -> Verdict:
        """The verdict on a request without a decision. It passes by break glass, or if all budgets only warn: those
        that cover the pod, or those of the namespace if objects could not be read."""
        pod = disruption.pod
        budgets = self._lister.budgets(pod.namespace)
        if not busy.message:
            scales = self._lister.scales(pod.namespace)
            budgets = [each for each in budgets if protected_operation(each.spec, disruption, pod, scales) is not None]
        if not budgets:
            return Passed()
        message = busy.message or texts.busy(budgets[0].metadata.name)
        if disruption.break_glass:
            return Passed((texts.passed_without_record(message),), broken_glass=True, covered=True)
        if all(map(_only_warns, budgets)):
            return Passed((texts.only_warned(message),), only_warned=True, covered=True)
        return Busy(message)

    def _remove_records(self, disruption: Disruption, records: _Records) -> None:
        for stored in records.budgets.values():
            if stored is not None:
                removal = functools.partial(remove, stored, disruption.pod.uid, disruption.operation)
                self._shared.change(stored.metadata, removal)


def _only_warns(budget: PodUnavailableBudget) -> bool:
    return budget.spec.mode == BudgetMode.WARN
