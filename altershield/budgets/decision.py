"""Whether a disruption of a pod is admitted. The functions are pure: the caller does the I/O and calls them again.

`step` decides about one request. The request passes, or it is refused, or objects have to be read first, or a budget
has to record it. `charge` puts the records of several waiting requests into one new status.

A request passes only after its record is stored. The API server refuses a status that is based on an older version of
the budget. So several gatekeepers together never admit more disruptions than the budget allows.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from altershield.api.budgets import (
    MAX_BY,
    BudgetMode,
    DisruptionRecord,
    Operation,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
    UnhealthyPodPolicy,
)
from altershield.budgets import texts
from altershield.budgets.changes import merged
from altershield.budgets.coverage import Scales
from altershield.budgets.numbers import Counted, Numbers, recorded
from altershield.budgets.operations import protected_operation, shows_disruption
from altershield.budgets.pods import Pod
from altershield.budgets.records import is_fresh, is_full, record, records_for, with_record
from altershield.budgets.steps import AwaitPods, Disruption, Passed, ReadOwners, Refused, Reserve, Step
from kube_base.meta import version_number


class Lister(Protocol):
    """Reads the caches of a process."""

    def scales(self, namespace: str) -> Scales: ...

    @property
    def seen(self) -> int:
        """The resourceVersion up to which the cached pods are known."""

    def is_terminating(self, namespace: str) -> bool: ...

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        """The budgets of the namespace, sorted by name."""

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        """The pods of a budget, and the resourceVersion up to which they are known."""

    def blocking_pdb(self, pod: Pod) -> str:
        """The name of a PodDisruptionBudget that allows no eviction of the pod now; empty: there is none."""


class _Admitted(NamedTuple):
    """The budget admits the disruption, and no record has to be written. `warning`: why the budget would refuse it, if
    it had not the mode Warn, or without break glass."""

    warning: str = ""
    broken_glass: bool = False


class _NeedsRecord(NamedTuple):
    """The budget admits the disruption, but a record has to be written first. `after`: the numbers with this record.
    `excess`: why the budget would refuse the request without break glass; empty: it would not."""

    record: DisruptionRecord
    pod: Pod
    after: Numbers
    excess: str = ""


_BudgetVerdict = _Admitted | _NeedsRecord | Refused | ReadOwners | AwaitPods
"""The verdict of one budget on one disruption."""

_Covering = tuple[PodUnavailableBudget, Operation]
"""A budget that protects a pod from a request, and the operation of the request for this budget."""

_MAX_COVERING = 20
"""The maximum number of budgets that decide about one pod. While a budget counts its pods, the process decides about no
other request."""
_ADMITTED = _Admitted()


def step(disruption: Disruption, lister: Lister, now: float, *, reserved: frozenset[str] = frozenset()) -> Step:
    """The next step of the decision about a request. `now`: Unix seconds by the API server's clock. `reserved`: the
    uids of the budgets in which the caller has stored a record of this request already."""
    pod = _newest(disruption.pod, lister)
    if not pod.judged or pod.opted_out or lister.is_terminating(pod.namespace):
        return Passed()
    covering = _covering(disruption, pod, lister)
    if isinstance(covering, ReadOwners):
        return covering
    deciding = _deciding(covering, break_glass=disruption.break_glass)
    if isinstance(deciding, Refused):
        return deciding
    if not deciding:
        return Passed()
    waiting: Step | None = None
    warnings: list[str] = []
    broken_glass = only_warned = False
    for budget, operation in deciding:
        verdict = (
            _ADMITTED
            if budget.metadata.uid in reserved
            else _judge(budget, operation, disruption, pod, lister, now, sole=len(deciding) == 1)
        )
        match verdict:
            case _Admitted(warning, breaks_glass):
                if warning:
                    broken_glass = broken_glass or breaks_glass
                    only_warned = only_warned or not breaks_glass
                    warnings.append(warning)
            case _NeedsRecord(excess=excess):
                if excess:
                    broken_glass = True
                    warnings.append(texts.passed_by_break_glass(excess))
                if not disruption.dry_run and waiting is None:
                    waiting = Reserve(budget)
            case Refused():
                return verdict
            case _:
                waiting = waiting or verdict
    return waiting or Passed(tuple(warnings), broken_glass, only_warned, covered=True)


def _covering(disruption: Disruption, pod: Pod, lister: Lister) -> list[_Covering] | ReadOwners:
    """The budgets that protect the pod from the request."""
    covering: list[_Covering] = []
    scales = lister.scales(pod.namespace)
    for budget in lister.budgets(pod.namespace):
        operation = protected_operation(budget.spec, disruption, pod, scales)
        if isinstance(operation, ReadOwners):
            return operation
        if operation is not None:
            covering.append((budget, operation))
    return covering


def _deciding(covering: list[_Covering], *, break_glass: bool) -> list[_Covering] | Refused:
    """The budgets that decide, of those that protect the pod. If they are too many, budgets with the mode Warn do not
    decide, and too many others refuse the request."""
    if len(covering) <= _MAX_COVERING:
        return covering
    enforcing = [each for each in covering if each[0].spec.mode == BudgetMode.ENFORCE]
    if len(enforcing) > _MAX_COVERING and not break_glass:
        return Refused(texts.too_many(len(enforcing), _MAX_COVERING))
    return (enforcing or covering)[:_MAX_COVERING]


def charge(
    budget: PodUnavailableBudget, disruptions: Sequence[Disruption], lister: Lister, now: float
) -> tuple[PodUnavailableBudgetStatus, tuple[str | None, ...]]:
    """The status with the records of the requests that the budget admits, each decided after the records of the earlier
    ones. The second value has for each request with a record: why the budget would refuse the request without break
    glass; empty: it would not. None: the request has no record, and has to be decided again by `step`."""
    status = budget.status
    excesses: list[str | None] = []
    for disruption in disruptions:
        verdict = _judge_to_record(msgspec.structs.replace(budget, status=status), disruption, lister, now)
        if isinstance(verdict, _NeedsRecord):
            status = with_record(status, verdict.pod, verdict.record, verdict.after)
        excesses.append(verdict.excess if isinstance(verdict, _NeedsRecord) else None)
    return status, tuple(excesses)


def _judge_to_record(
    budget: PodUnavailableBudget, disruption: Disruption, lister: Lister, now: float
) -> _BudgetVerdict:
    """The verdict of the budget with its present status, for a request that is to be recorded in it."""
    pod = _newest(disruption.pod, lister)
    operation = protected_operation(budget.spec, disruption, pod, lister.scales(pod.namespace))
    if operation is None or isinstance(operation, ReadOwners):
        return _ADMITTED
    # `sole` would let the request pass on the record of an earlier request, without a record of its own
    return _judge(budget, operation, disruption, pod, lister, now, sole=False)


def _newest(pod: Pod, lister: Lister) -> Pod:
    """The pod of the request, or the cached one if that is newer."""
    known = lister.pod(pod.namespace, pod.name)
    if known is not None and known is not pod and known.packed_uid == pod.packed_uid and known.version > pod.version:
        return known
    return pod


def _judge(
    budget: PodUnavailableBudget,
    operation: Operation,
    disruption: Disruption,
    pod: Pod,
    lister: Lister,
    now: float,
    *,
    sole: bool,
) -> _BudgetVerdict:
    """The verdict of one budget on a request that has no record in it yet.

    `sole`: no other budget decides about the request. It may then pass on the fresh record of an earlier request of the
    same operation, without a record of its own. Other budgets may decide about another operation: if one of them
    refuses the earlier request, its record is removed.

    The disruption of a pod that is not available gets a record too, because the pod may become available before the
    disruption happens. It does not count against the budget. If the status is full, it passes without a record.
    """
    status = budget.status
    records = records_for(status, operation)
    known = records.get(pod.uid) if records else None
    shows = shows_disruption(operation, disruption, pod, budget.spec, lister.scales(pod.namespace))
    repeated = known is not None and known.shows == shows
    if sole and repeated and known is not None and known.operation == operation and is_fresh(known, now):
        return _ADMITTED
    found, seen = lister.counted(budget)
    lack = _lack(budget, pod, found, seen)
    if lack is not None:
        return lack
    with_records = recorded(status)
    counts_now = pod.packed_uid in found.available and pod.packed_uid not in with_records
    others = len(found.available) - len(found.available & with_records) - counts_now
    after = Numbers(found.total, found.desired, others)
    if operation == Operation.EVICT and pod.available and not disruption.break_glass:
        pdb = lister.blocking_pdb(pod)
        if pdb:
            return Refused(texts.blocked_by_pdb(pdb), by_pdb=True)
    is_further_change = known is not None and not repeated
    refusal = _refusal(
        budget, pod, after, is_further_change=is_further_change, has_record=pod.packed_uid in with_records
    )
    if known is None and is_full(status):
        if not pod.available and not refusal:
            return _ADMITTED
        refusal = refusal or texts.full(budget)
        if disruption.break_glass:
            return _Admitted(texts.passed_without_record(refusal), broken_glass=True)
    if refusal and not disruption.break_glass:
        return _refused(budget, refusal, found, after)
    if known is not None and known.shows and not repeated:
        shows = merged(known.shows, shows)
    # a user who passed by break glass is reported, even if a repeated request would pass without it
    broken_glass = bool(refusal) or (known is not None and known.break_glass)
    by = known.by if known is not None and known.break_glass and not refusal else disruption.by[:MAX_BY]
    return _NeedsRecord(record(pod.name, operation, now, by, shows, break_glass=broken_glass), pod, after, refusal)


def _lack(budget: PodUnavailableBudget, pod: Pod, found: Counted, seen: int) -> AwaitPods | ReadOwners | None:
    """What has to be read before the numbers are right; None: they are. `found`: the pods of the budget, known up to
    the resourceVersion `seen`."""
    needed = version_number(budget.status.pods_resource_version)
    if pod.available:  # an older cache may still have a predecessor of the same name, which would count too
        needed = max(needed, pod.version)
    if seen < needed:
        return AwaitPods(budget, needed)
    return ReadOwners(found.unread) if found.unread else None


def _refusal(
    budget: PodUnavailableBudget, pod: Pod, after: Numbers, *, is_further_change: bool, has_record: bool
) -> str:
    """Why the budget does not admit the disruption; empty: it does. `is_further_change`: the pod has a record of
    another change. `has_record`: the pod has a record of any operation."""
    if not pod.available:
        return "" if is_further_change else _unhealthy(budget, pod, after)
    if after.current >= after.desired:
        return ""
    return texts.exceeded(budget, after._replace(current=after.current + (not has_record)))


def _unhealthy(budget: PodUnavailableBudget, pod: Pod, after: Numbers) -> str:
    """Why a pod that is not available may not be disrupted; empty: it may be. With `IfHealthyBudget`, it may be
    disrupted while enough other pods are available. A pending pod may always be disrupted, as for
    PodDisruptionBudgets."""
    admitted = pod.pending or after.current >= after.desired
    if budget.spec.unhealthy_pod_policy != UnhealthyPodPolicy.IF_HEALTHY_BUDGET or admitted:
        return ""
    return texts.exceeded(budget, after)


def _refused(budget: PodUnavailableBudget, message: str, found: Counted, after: Numbers) -> _Admitted | Refused:
    """The refusal, or a warning if the budget has the mode Warn."""
    if budget.spec.mode == BudgetMode.WARN:
        return _Admitted(texts.only_warned(message))
    return Refused(message, (*texts.unavailable(budget, found), texts.way_out(budget, after)))
