"""The informers of budgets, and of the pods and workloads that they count."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from altershield.api.budgets import PodUnavailableBudget
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from altershield.budget_caches.known_scales import KnownScales
from altershield.budget_caches.namespaces import BudgetNamespaces
from altershield.budgets import pods
from altershield.budgets.exhausted import groups_of, keeps_from_deletion
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Counted, counted, numbers
from altershield.budgets.pods import Pod
from altershield.budgets.scaled import Reader, Scaled
from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.access.optional import definition_informer, run_while_defined
from kube_base.access.queue import as_backlog
from kube_base.resources import DISRUPTION_BUDGETS, PODS, GroupKind, Resource

_NAMESPACE = "namespace"


class BudgetCaches:
    """The informers, and the queries of decisions. The caches have the budgets of the namespaces for which `governs` is
    true. Of these namespaces, they have the pods and workloads of those with a budget. `is_terminating`: whether a
    namespace is being deleted.

    Implements the parts of `altershield.budgets.decision.Lister` that need no I/O.
    """

    def __init__(
        self,
        client: Client,
        governs: Callable[[str], bool],
        is_terminating: Callable[[str], bool],
        definitions: Mapping[GroupKind, Informer[Any]] | None = None,
    ) -> None:
        """`definitions`: the informers of CustomResourceDefinitions that the process runs already, by the kind that the
        definition defines."""

        def is_governed(obj: Any) -> bool:
            return governs(obj.metadata.namespace)

        def keep(obj: Any) -> bool:
            return self.namespaces.has_budget(obj.metadata.namespace) and is_governed(obj)

        self.is_terminating = is_terminating
        self.budgets_informer = Informer(
            client, POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget, keep=is_governed, resync=0
        )
        self.disruption_budgets = Informer(client, DISRUPTION_BUDGETS, DisruptionBudget, keep=is_governed, resync=0)
        self.namespaces = BudgetNamespaces(self.budgets_informer, self._of_namespaces_with_budgets)
        self.pods_informer = Informer(client, PODS, Pod, read=pods.read, keep=keep, name="budget-pods", resync=0)
        between = {adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None}
        resources = (*(adapter.resource for adapter in ADAPTERS), *between)
        readers = {resource: Reader(resource) for resource in resources}
        self._scaled: dict[Resource, Informer[Scaled]] = {
            resource: Informer(
                client,
                resource,
                Scaled,
                read=reader,
                # most sets are older versions without pods; a set that still deletes its pods is read live
                keep=keep if resource not in between else lambda each: each.replicas > 0 and keep(each),
                name=f"budget-{resource.plural}",
                resync=0,
            )
            for resource, reader in readers.items()
        }
        known = definitions or {}
        self._definitions = {
            adapter.resource: known[adapter.resource.group_kind]
            if adapter.resource.group_kind in known
            else definition_informer(client, adapter.crd)
            for adapter in ADAPTERS
            if adapter.crd
        }
        self._own_definitions = [each for each in self._definitions.values() if each not in known.values()]
        self.scales = KnownScales(client, self._scaled, readers)
        self.index = PodIndex()
        self.pods_informer.add_handler(self.index.put)
        self._counts: dict[str, tuple[object, Counted]] = {}
        for informer in (self.budgets_informer, self.disruption_budgets):
            informer.add_index(_NAMESPACE, lambda each: (each.metadata.namespace,))
        self.budgets_informer.add_handler(self._forget)

    def share_names(self, informers: Iterable[Informer[Any]]) -> None:
        """Use the names and uids of other informers of the same resources, to save memory."""
        counted: dict[Resource, Informer[Any]] = {PODS: self.pods_informer, **self._scaled}
        for informer in informers:
            counted[informer.resource].share_names(informer)

    def _forget(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._counts.pop(old.metadata.uid, None)

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        """The budgets of the namespace that are not being deleted, by name."""
        found = self.budgets_informer.by_index(_NAMESPACE, namespace)
        if len(found) > 1:
            found.sort(key=lambda budget: budget.metadata.name)
        return [each for each in found if each.metadata.deletion_timestamp is None]

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods_informer.get(namespace, name)

    @property
    def seen(self) -> int:
        """The resourceVersion up to which the cached pods are known."""
        return self.pods_informer.changed_version

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        """The pods of a budget, and the resourceVersion up to which they are known. The pods are counted again only
        when the spec of the budget, or a pod or workload of its namespace, has changed."""
        namespace, uid = budget.metadata.namespace, budget.metadata.uid
        state = (budget.spec, self.index.changes(namespace), self.scales.changes(namespace))
        known = self._counts.get(uid)
        if known is None or known[0] != state:
            known = state, counted(budget, self.index.groups(namespace), self.scales.of(namespace))
            self._counts[uid] = known
        return known[1], self.seen

    def exhausted_budget(self, namespace: str, workload_uid: str) -> str:
        """The name of a budget that covers pods of this workload and admits no deletion of an available pod now; empty:
        there is none. Only budgets that cover a pod of the workload are counted: a namespace may have thousands."""
        budgets = self.budgets(namespace)
        if not budgets:
            return ""
        scales = self.scales.of(namespace)
        own = groups_of(workload_uid, self.index.groups(namespace), scales)
        for budget in budgets:
            if keeps_from_deletion(budget, own, scales):
                found, _ = self.counted(budget)
                if not numbers(found, budget.status).allowed:
                    return budget.metadata.name
        return ""

    def blocking_pdb(self, pod: Pod) -> str:
        """The name of a PodDisruptionBudget that allows no eviction of the pod now; empty: there is none."""
        for budget in self.disruption_budgets.by_index(_NAMESPACE, pod.namespace):
            if budget.blocks(pod):
                return budget.metadata.name
        return ""

    @property
    def required(self) -> tuple[Informer[Any], ...]:
        """The informers of budgets and of definitions. Decisions need their first lists, also in a cluster without
        budgets."""
        return (self.budgets_informer, self.disruption_budgets, *self._definitions.values())

    @property
    def counted_informers(self) -> tuple[Informer[Any], ...]:
        """The informers of the pods, workloads and sets that budgets count, without the kinds that a cluster may lack.
        They run from the first budget of the cluster on."""
        always = (each for resource, each in self._scaled.items() if resource not in self._definitions)
        return (*always, self.pods_informer)

    @property
    def begun_informers(self) -> tuple[Informer[Any], ...]:
        """The `counted_informers`, or none while the cluster has no budget."""
        return self.counted_informers if len(self.budgets_informer) else ()

    @property
    def governed(self) -> tuple[Informer[Any], ...]:
        """The informers that keep all objects of governed namespaces."""
        return (self.disruption_budgets, self.budgets_informer)

    def _of_namespaces_with_budgets(self) -> Iterator[Informer[Any]]:
        """The informers that keep only objects of namespaces with a budget. Workloads come before pods: otherwise,
        decisions would read the owners of the pods live."""
        for resource, informer in self._scaled.items():
            definition = self._definitions.get(resource)
            if definition is None or len(definition):
                yield informer
        yield self.pods_informer

    def is_filled(self, namespace: str) -> bool:
        """Whether the caches have all objects of a namespace that has a budget."""
        return self.is_listed and self.namespaces.is_filled(namespace)

    async def wait_filled(self, namespace: str) -> None:
        for informer in self.counted_informers:
            await informer.wait_synced()
        await self.namespaces.wait_filled(namespace)

    @property
    def is_listed(self) -> bool:
        """Whether the first lists of `counted_informers` are complete."""
        return all(informer.synced for informer in self.counted_informers)

    async def run(self) -> None:
        """Keep the caches up to date until cancelled. Pods and workloads are listed once the cluster has a budget, and
        after the budgets: these decide which pods and workloads the caches keep."""
        async with asyncio.TaskGroup() as group:
            for informer in (self.budgets_informer, self.disruption_budgets, *self._own_definitions):
                group.create_task(informer.run())
            await self.budgets_informer.wait_synced()
            await self.namespaces.wait_first()
            group.create_task(self.namespaces.run())
            group.create_task(self.pods_informer.run())
            for resource, scaled in self._scaled.items():
                definition = self._definitions.get(resource)
                run = scaled.run() if definition is None else run_while_defined(definition, scaled)
                group.create_task(run)
            for informer in self.counted_informers:
                await informer.wait_synced()
            with as_backlog():
                self.namespaces.announce()

    def of(self, resource: Resource, namespace: str) -> list[PodUnavailableBudget | DisruptionBudget]:
        """All budgets of this resource in the namespace."""
        informer: Informer[Any] = self.disruption_budgets if resource == DISRUPTION_BUDGETS else self.budgets_informer
        return informer.by_index(_NAMESPACE, namespace)

    def add_scaled_handler(self, handler: Callable[[Scaled | None, Scaled | None], None]) -> None:
        """Call `handler(old, new)` for each change of a workload or set."""
        for informer in self._scaled.values():
            informer.add_handler(handler)
