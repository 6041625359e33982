"""The numbers of a budget: how many pods there should be, how many have to be available, how many are available, and
how many may be disrupted.

`counted` counts pods and workloads. `numbers` subtracts the pods with a record in the status. The two are separate,
because several decisions use one count.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, Protocol

from altershield.api.amounts import scaled
from altershield.api.budgets import DisruptionRecord, PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.coverage import Scales, Workload, protects, unread_owner, workload_of
from altershield.budgets.index import Group
from altershield.budgets.pods import Flag, Pod
from altershield.workloads.meta import Owner, Packed, packed

_OPTED_OUT = int(Flag.OPTED_OUT)
_ENDED = int(Flag.ENDED)
_NO_UIDS: frozenset[Packed] = frozenset()


class Counted(NamedTuple):
    """The pods of a budget, without regard to its records."""

    total: int
    """How many pods there should be."""
    desired: int
    """How many pods have to be available."""
    pods: dict[Packed, Pod]
    """The pods that count and exist (neither terminating nor ended), by uid."""
    available: set[Packed]
    """The uids of the available ones of `pods`."""
    unavailable: list[Pod]
    """The other ones of `pods`."""
    unread: tuple[Owner, ...]
    """Owners that have to be read live before the numbers are complete."""


class Numbers(NamedTuple):
    """The numbers in the status of a budget."""

    total: int
    """How many pods there should be."""
    desired: int
    """How many pods have to be available."""
    current: int
    """How many pods are available."""

    @property
    def allowed(self) -> int:
        """How many pods may be disrupted now."""
        return max(0, self.current - self.desired)


def counted(budget: PodUnavailableBudget, groups: Iterable[Group], scales: Scales) -> Counted:
    """Count the pods that a budget covers. `groups`: the pods of its namespace."""
    spec = budget.spec
    pods: dict[Packed, Pod] = {}
    available: set[Packed] = set()
    unavailable: list[Pod] = []
    replicas: dict[str, int] = {}  # by the uid of the workload
    unread: dict[str, Owner] = {}
    of_unknown_size = bare = 0  # pods of workloads whose number of replicas is not known; pods without a controller
    for group in groups:
        workload = _counting(spec, group, scales)
        if workload is None:
            continue
        if isinstance(workload, Owner):
            unread[workload.uid] = workload
            continue
        if workload.replicas is not None:
            replicas[workload.uid] = workload.replicas
        for uid, pod in group.pods.items():
            if pod.flags & (_OPTED_OUT | _ENDED):
                continue
            if not workload.uid:
                bare += 1
            elif workload.replicas is None:
                of_unknown_size += 1
            if pod.exists:
                pods[uid] = pod
                if pod.available:
                    available.add(uid)
                else:
                    unavailable.append(pod)
    total = _total(spec, replicas, of_unknown_size, bare, scales)
    return Counted(total, desired(spec, total), pods, available, unavailable, tuple(unread.values()))


def _counting(spec: PodUnavailableBudgetSpec, group: Group, scales: Scales) -> Workload | Owner | None:
    """The workload of the pods of a group, if these pods count. An Owner: this object has to be read live first."""
    missing = unread_owner(spec, group.owner, scales)
    if missing is not None:
        return missing
    if not protects(spec, group.owner, group.labels, scales):
        return None
    workload = workload_of(group.owner, scales)
    return workload if isinstance(workload, Owner) or counts(spec, workload) else None


def counts(spec: PodUnavailableBudgetSpec, workload: Workload) -> bool:
    """Whether the pods of a workload count. They do not count if the workload deletes all of them. Pods without a
    controller count only if the budget says how many there should be: by `protectTotalReplicas`, or by a number of pods
    as `minAvailable`."""
    if workload.deletes_pods:
        return False
    return bool(workload.uid) or spec.protect_total_replicas is not None or isinstance(spec.min_available, int)


def _total(
    spec: PodUnavailableBudgetSpec, replicas: dict[str, int], of_unknown_size: int, bare: int, scales: Scales
) -> int:
    """How many pods there should be. For the arguments, see `counted`."""
    if not replicas and spec.target_ref is not None:  # the named workload may have no pods yet
        scaled = scales.named(spec.target_ref)
        if scaled is not None:
            return scaled.replicas
    if replicas:
        return sum(replicas.values()) + of_unknown_size + (bare if isinstance(spec.min_available, int) else 0)
    if spec.protect_total_replicas is not None:
        return spec.protect_total_replicas
    return of_unknown_size + bare


def desired(spec: PodUnavailableBudgetSpec, total: int) -> int:
    """How many of `total` pods have to be available. Shares are rounded up, as Kubernetes rounds them."""
    if spec.min_available is not None:
        available = scaled(spec.min_available, total, round_up=True) or 0
    elif spec.max_unavailable is not None:
        available = total - (scaled(spec.max_unavailable, total, round_up=True) or 0)
    else:
        available = 0
    return min(max(available, 0), total)


class HasRecords(Protocol):
    """The records of a budget: its status, or a result of `records.settled`."""

    @property
    def disrupted_pods(self) -> Mapping[str, DisruptionRecord]: ...
    @property
    def unavailable_pods(self) -> Mapping[str, DisruptionRecord]: ...


def recorded(status: HasRecords) -> Set[Packed]:
    """The uids of the pods with a record."""
    if not status.disrupted_pods and not status.unavailable_pods:
        return _NO_UIDS
    return {packed(uid) for records in (status.disrupted_pods, status.unavailable_pods) for uid in records}


def numbers(found: Counted, status: HasRecords) -> Numbers:
    """The numbers, with the records of `status`: a pod with a record is not available."""
    return Numbers(found.total, found.desired, len(found.available) - len(found.available & recorded(status)))
