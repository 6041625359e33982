"""The numbers of a budget: how many pods there should be, have to be available, are available, and may be disrupted.

`counted` reads pods and workloads. `numbers` subtracts the records of the status. They are apart because one pass over
the pods serves several decisions.
"""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, Protocol

from altershield.api.budgets import Amount, DisruptionRecord, PodUnavailableBudget, PodUnavailableBudgetSpec
from altershield.budgets.coverage import Scales, Workload, covers, is_ignored, unread_owner, workload_of
from altershield.budgets.index import Group
from altershield.budgets.pods import Flag, Pod
from altershield.workloads.meta import Owner, Packed, packed

_OPTED_OUT = int(Flag.OPTED_OUT)
_ENDED = int(Flag.ENDED)
_NOBODY: frozenset[Packed] = frozenset()


class Counted(NamedTuple):
    """The pods of a budget, without its records."""

    total: int
    desired: int
    pods: dict[Packed, Pod]
    """The pods that count and exist (neither terminating nor ended), by uid."""
    available: set[Packed]
    """The uids of those that are available by themselves."""
    unavailable: list[Pod]
    """The others of these pods."""
    unread: tuple[Owner, ...]
    """Owners that have to be read live before the numbers are complete."""


class Numbers(NamedTuple):
    total: int
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
    telling: dict[str, int] = {}
    unread: dict[str, Owner] = {}
    untold = bare = 0
    for group in groups:
        missing = unread_owner(spec, group.owner, scales)
        if missing is not None:
            unread[missing.uid] = missing
            continue
        if not covers(spec, group.owner, group.labels, scales) or is_ignored(spec, group.labels):
            continue
        workload = workload_of(group.owner, scales)
        if isinstance(workload, Owner):
            unread[workload.uid] = workload
            continue
        if not counts(spec, workload):
            continue
        if workload.replicas is not None:
            telling[workload.uid] = workload.replicas
        for uid, pod in group.pods.items():
            if pod.flags & (_OPTED_OUT | _ENDED):
                continue
            if not workload.uid:
                bare += 1
            elif workload.replicas is None:
                untold += 1
            if pod.exists:
                pods[uid] = pod
                if pod.available:
                    available.add(uid)
                else:
                    unavailable.append(pod)
    total = _total(budget, telling, untold, bare, scales)
    return Counted(total, desired(spec, total), pods, available, unavailable, tuple(unread.values()))


def counts(spec: PodUnavailableBudgetSpec, workload: Workload) -> bool:
    """Whether the pods of a workload count. Pods that are to go do not, nor do pods without a controller, unless the
    budget says how many there should be."""
    if workload.leaving:
        return False
    return bool(workload.uid) or spec.protect_total_replicas is not None or isinstance(spec.min_available, int)


def _total(budget: PodUnavailableBudget, telling: dict[str, int], untold: int, bare: int, scales: Scales) -> int:
    spec = budget.spec
    if not telling and spec.target_ref is not None:  # it may have no pods yet
        target = scales.named(spec.target_ref)
        if target is not None:
            return target.replicas
    if telling:
        return sum(telling.values()) + untold + (bare if isinstance(spec.min_available, int) else 0)
    if spec.protect_total_replicas is not None:
        return spec.protect_total_replicas
    return untold + bare


def desired(spec: PodUnavailableBudgetSpec, total: int) -> int:
    """How many of `total` pods have to be available. Shares are rounded up, as Kubernetes rounds them."""
    if spec.min_available is not None:
        found = share(spec.min_available, total)
    elif spec.max_unavailable is not None:
        found = total - share(spec.max_unavailable, total)
    else:
        found = 0
    return min(max(found, 0), total)


def share(amount: Amount, total: int) -> int:
    """A number of pods, or a share of `total`, rounded up; 0 for a text that is neither."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    if digits == amount or not (digits.isascii() and digits.isdigit()):
        return 0
    return -(-total * int(digits) // 100)


class Recording(Protocol):
    """The status of a budget, or the records that it will have."""

    @property
    def disrupted_pods(self) -> Mapping[str, DisruptionRecord]: ...
    @property
    def unavailable_pods(self) -> Mapping[str, DisruptionRecord]: ...


def recorded(status: Recording) -> Set[Packed]:
    """The uids of the pods with a record."""
    if not status.disrupted_pods and not status.unavailable_pods:
        return _NOBODY
    return {packed(uid) for records in (status.disrupted_pods, status.unavailable_pods) for uid in records}


def numbers(found: Counted, status: Recording) -> Numbers:
    """The numbers, with the records of `status`: a pod with a record is not available."""
    away = recorded(status)
    return Numbers(found.total, found.desired, len(found.available) - len(found.available & away))
