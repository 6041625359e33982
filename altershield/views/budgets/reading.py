"""Reads PodUnavailableBudgets, and the pods and workloads that one of them counts."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from altershield.api.budgets import PodUnavailableBudget, TargetRef
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from altershield.budgets import pods
from altershield.budgets.index import PodIndex
from altershield.budgets.scaled import Reader, Scaled
from altershield.views import permission
from altershield.views.budgets.figures import Surroundings
from altershield.workloads import ADAPTERS
from altershield.workloads import pods as releases_pods
from altershield.workloads.meta import Owner
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ForbiddenError, NotFoundError
from kube_base.errors import ReportedError
from kube_base.resources import DISRUPTION_BUDGETS, PODS, Resource

T = TypeVar("T")

_OPTIONAL = {adapter.resource for adapter in ADAPTERS if adapter.crd}
"""The kinds that a cluster may lack."""


class BudgetError(ReportedError):
    """A budget could not be shown."""


class Around(NamedTuple):
    surroundings: Surroundings
    problems: Sequence[str]
    """Lists that failed. The numbers may be wrong then."""


class ListedScales:
    """Implements `altershield.budgets.coverage.Scales`, from lists of one namespace that are newer than its pods.
    `listed`: the kinds whose lists are complete."""

    def __init__(self, objects: Iterable[Scaled], listed: Iterable[Resource]) -> None:
        self._objects = {each.uid: each for each in objects}
        self._listed = {resource.group_kind for resource in listed}

    def get(self, owner: Owner) -> Scaled | None:
        return self._objects.get(owner.uid)

    def owned_by(self, uid: str) -> Sequence[Scaled]:
        return [each for each in self._objects.values() if each.owner.uid == uid]

    def named(self, reference: TargetRef) -> Scaled | None:
        wanted = (reference.group_kind, reference.name)
        found = (each for each in self._objects.values() if (each.group_kind, each.name) == wanted)
        return next(found, None)

    def is_gone(self, owner: Owner) -> bool:
        return owner.group_kind in self._listed and owner.uid not in self._objects

    def can_read(self, owner: Owner) -> bool:
        return False


async def budgets_of(client: Client, namespace: str) -> list[PodUnavailableBudget]:
    """The budgets of a namespace, or of all if it is empty, by namespace and name."""
    try:
        listed = await client.list(POD_UNAVAILABLE_BUDGETS, namespace, as_=PodUnavailableBudget)
    except NotFoundError:
        raise BudgetError(f"AlterShield is not installed in the cluster at {client.server}") from None
    except ForbiddenError as error:
        raise _forbidden(namespace, error) from error
    return sorted(listed.items, key=lambda each: (each.metadata.namespace, each.metadata.name))


async def budget_of(client: Client, namespace: str, name: str) -> PodUnavailableBudget:
    try:
        return await client.get(POD_UNAVAILABLE_BUDGETS, name, namespace, as_=PodUnavailableBudget)
    except NotFoundError as error:
        raise BudgetError(f'there is no PodUnavailableBudget {name} in namespace "{namespace}": {error}') from error
    except ForbiddenError as error:
        raise _forbidden(namespace, error) from error


async def around(client: Client, budget: PodUnavailableBudget) -> Around:
    """What the numbers of a budget rest on. Pods are read before their workloads, so that a workload that is not found
    is gone."""
    namespace = budget.metadata.namespace
    try:
        listed = (await client.list(PODS, namespace, as_=msgspec.Raw)).items
    except ForbiddenError as error:
        raise _forbidden(namespace, error) from error
    index = PodIndex(map(pods.read, listed))
    owners: list[Owner | TargetRef] = [group.owner for group in index.groups(namespace)]
    if budget.spec.target_ref is not None:
        owners.append(budget.spec.target_ref)
    kinds = {each.group_kind for each in owners}
    problems: list[str] = []
    objects: list[Scaled] = []
    known: list[Resource] = []
    between = {adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None}
    for resource in (*(adapter.resource for adapter in ADAPTERS), *between):
        # for a kind that it does not have, an API server may answer Forbidden too
        needed = resource not in _OPTIONAL or resource.group_kind in kinds
        found = await _list(client, resource, namespace, msgspec.Raw, problems if needed else [])
        if found is not None:
            objects += map(Reader(resource), found)
            known.append(resource)
    disruption_budgets = await _list(client, DISRUPTION_BUDGETS, namespace, DisruptionBudget, problems)
    troubles = {pod.metadata.uid: str(pod.trouble) for pod in map(releases_pods.read, listed) if pod.trouble}
    return Around(Surroundings(index, ListedScales(objects, known), troubles, disruption_budgets or ()), problems)


async def _list(
    client: Client, resource: Resource, namespace: str, as_: type[T], problems: list[str]
) -> list[T] | None:
    """The objects; none if the cluster does not have this kind; None if they cannot be listed."""
    try:
        return (await client.list(resource, namespace, as_=as_)).items
    except NotFoundError:
        return []
    except ApiError as error:
        problems.append(f"cannot list {resource.plural}: {error}")
        return None


def _forbidden(namespace: str, error: ForbiddenError) -> BudgetError:
    attempt = f"read budgets and pods {permission.place(namespace)}"
    return BudgetError(permission.refused(attempt, error, permission.role("view", namespace)))
