"""Whether a disruption of a pod is admitted. Pure functions; the caller does what they ask for and calls them again.

`step` decides about one request: it passes, is refused, something has to be read first, or a budget has to record it.
`charge` puts the records of several waiting requests into one new status. A request passes only after its record is
stored: the API server refuses a write that rests on an older status, so gatekeepers never admit more than the budget.
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
    PodUnavailableBudgetSpec,
    PodUnavailableBudgetStatus,
    UnhealthyPodPolicy,
)
from altershield.api.meta import version_number
from altershield.budgets import texts
from altershield.budgets.changes import NO_CHANGES, Changes, bounded, mark_of, merged, shows_of, shows_restart
from altershield.budgets.coverage import Scales, Workload, covers, is_ignored, unread_owner, workload_of
from altershield.budgets.numbers import Counted, Numbers, counts, recorded
from altershield.budgets.pods import Pod
from altershield.budgets.records import is_fresh, is_full, record, records_for, with_record
from altershield.workloads.meta import Owner


class Disruption(msgspec.Struct, frozen=True, gc=False):
    """A request that disrupts a pod."""

    operation: Operation
    """Of an update: UPDATE or RESIZE. Each budget decides which of the two it is."""
    pod: Pod
    """The pod before the request."""
    by: str
    break_glass: bool = False
    dry_run: bool = False
    changes: Changes = NO_CHANGES
    generation: int = 0
    """The generation of the pod after the request, of an update."""
    restarts: tuple[str, ...] = ()
    """The containers that a RESTART names."""
    request_name: str = ""
    """The name of the ContainerRecreateRequest, of a RESTART."""
    container_ids: tuple[tuple[str, str], ...] = ()
    """Their ids before the restart, if the request says them."""


class Lister(Protocol):
    """What a process knows of the cluster at one moment."""

    def scales(self, namespace: str) -> Scales: ...

    @property
    def seen(self) -> int:
        """The resourceVersion up to which the pods are known."""

    def is_terminating(self, namespace: str) -> bool: ...

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        """By name."""

    def pod(self, namespace: str, name: str) -> Pod | None: ...

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        """The pods of a budget, and the resourceVersion up to which they are known."""

    def blocking_pdb(self, pod: Pod) -> str:
        """The name of a PodDisruptionBudget that allows no eviction of the pod now; empty: there is none."""


class Passed(NamedTuple):
    warnings: tuple[str, ...] = ()
    broken_glass: bool = False
    """A budget refused the request, and the user was allowed to pass."""
    only_warned: bool = False
    """A budget with the mode Warn would refuse it."""
    covered: bool = False
    """A budget protects the pod from this operation."""


class Refused(NamedTuple):
    message: str
    warnings: tuple[str, ...] = ()
    by_pdb: bool = False


class ReadOwners(NamedTuple):
    """Read these objects live, then decide again."""

    owners: tuple[Owner, ...]


class AwaitPods(NamedTuple):
    """The pods of `budget` have to be known up to `version`: wait for the watch, or list them."""

    budget: PodUnavailableBudget
    version: int


class Reserve(NamedTuple):
    """Record the request in this budget, then decide again. `excess`: why the budget would refuse it without break
    glass."""

    budget: PodUnavailableBudget
    excess: str = ""


Step = Passed | Refused | ReadOwners | AwaitPods | Reserve


class _Next(NamedTuple):
    """The budget does not object, and nothing has to be written. `warning`: what a budget would refuse that only
    warns."""

    warning: str = ""
    covered: bool = False


class _Charge(NamedTuple):
    """The disruption needs a record, after which the numbers are these. `excess`: why it would be refused without break
    glass."""

    record: DisruptionRecord
    pod: Pod
    after: Numbers
    excess: str = ""


_Verdict = _Next | _Charge | Refused | ReadOwners | AwaitPods

_CHANGES = (Operation.UPDATE, Operation.RESIZE)
_MAX_COVERING = 20
"""The budgets of one pod that are asked. Each of them counts its pods, during which no other request is decided."""
_NOT_COVERED = _Next()
_PASSES = _Next(covered=True)


def step(disruption: Disruption, lister: Lister, now: float, *, reserved: frozenset[str] = frozenset()) -> Step:
    """What to do about a request next. `now`: the API server's clock. `reserved`: the uids of the budgets in which the
    caller has recorded this request already."""
    pod = _newest(disruption.pod, lister)
    if not pod.judged or pod.opted_out or lister.is_terminating(pod.namespace):
        return Passed()
    covering: list[tuple[PodUnavailableBudget, Operation]] = []
    scales = lister.scales(pod.namespace)
    for budget in lister.budgets(pod.namespace):
        found = _covering(budget, disruption, pod, scales)
        if isinstance(found, ReadOwners):
            return found
        if found is not None:
            covering.append((budget, found))
    if not covering:
        return Passed()
    if len(covering) > _MAX_COVERING:
        enforcing = [each for each in covering if each[0].spec.mode == BudgetMode.ENFORCE]
        if len(enforcing) > _MAX_COVERING and not disruption.break_glass:
            return Refused(texts.too_many(len(enforcing), _MAX_COVERING))
        covering = (enforcing or covering)[:_MAX_COVERING]
    waiting: Step | None = None
    warnings: list[str] = []
    broken_glass = only_warned = False
    for budget, operation in covering:
        mine = budget.metadata.uid in reserved
        verdict = _judge(budget, operation, disruption, pod, lister, now, mine=mine, several=len(covering) > 1)
        match verdict:
            case _Next(warning):
                if warning:
                    only_warned = True
                    warnings.append(warning)
            case _Charge(excess=excess):
                if excess:
                    broken_glass = True
                    warnings.append(texts.passed_by_break_glass(excess))
                if not disruption.dry_run and waiting is None:
                    waiting = Reserve(budget, excess)
            case Refused():
                return verdict
            case _:
                waiting = waiting or verdict
    return waiting or Passed(tuple(warnings), broken_glass, only_warned, covered=True)


def charge(
    budget: PodUnavailableBudget, disruptions: Sequence[Disruption], lister: Lister, now: float
) -> tuple[PodUnavailableBudgetStatus, tuple[bool, ...]]:
    """The status with the records of the requests that the budget admits, in their order; and for each request whether
    it is recorded. A request that is not recorded has to be decided again."""
    status = budget.status
    done: list[bool] = []
    for disruption in disruptions:
        present = msgspec.structs.replace(budget, status=status)
        verdict = _again(present, disruption, lister, now)
        if isinstance(verdict, _Charge):
            status = with_record(status, verdict.pod, verdict.record, verdict.after)
        done.append(isinstance(verdict, _Charge))
    return status, tuple(done)


def _again(budget: PodUnavailableBudget, disruption: Disruption, lister: Lister, now: float) -> _Verdict:
    pod = _newest(disruption.pod, lister)
    operation = _covering(budget, disruption, pod, lister.scales(pod.namespace))
    if operation is None or isinstance(operation, ReadOwners):
        return _NOT_COVERED
    # As for several budgets: a request that passes on another one's record writes it again.
    return _judge(budget, operation, disruption, pod, lister, now, mine=False, several=True)


def _newest(pod: Pod, lister: Lister) -> Pod:
    """The pod of the request, or the cached one if that is newer."""
    known = lister.pod(pod.namespace, pod.name)
    if known is not None and known is not pod and known.packed_uid == pod.packed_uid and known.version > pod.version:
        return known
    return pod


def _covering(
    budget: PodUnavailableBudget, disruption: Disruption, pod: Pod, scales: Scales
) -> Operation | ReadOwners | None:
    """The operation from which the budget protects the pod; None: it does not cover the pod, or does not protect from
    this operation."""
    spec = budget.spec
    missing = unread_owner(spec, pod.owner, scales)
    if missing is not None:
        return ReadOwners((missing,))
    if not covers(spec, pod.owner, pod.labels, scales) or is_ignored(spec, pod.labels):
        return None
    if disruption.operation not in spec.protect_operations and disruption.operation not in _CHANGES:
        return None
    workload, adopter = workload_of(pod.owner, scales), disruption.changes.adopter
    if isinstance(workload, Owner):
        return ReadOwners((workload,))
    if adopter.uid and isinstance(unread := workload_of(adopter, scales), Owner):
        return ReadOwners((unread,))
    operation = _operation(spec, disruption, pod, scales)
    return operation if operation in spec.protect_operations and counts(spec, workload) else None


def _operation(spec: PodUnavailableBudgetSpec, disruption: Disruption, pod: Pod, scales: Scales) -> Operation | None:
    if disruption.operation not in _CHANGES:
        return disruption.operation
    made = disruption.changes
    if made.disrupts or _leaves(spec, made, pod, scales):
        return Operation.UPDATE
    return Operation.RESIZE if made.resized else None


def _leaves(spec: PodUnavailableBudgetSpec, made: Changes, pod: Pod, scales: Scales) -> bool:
    """Whether the pod leaves the budget or its workload by its labels, or gets a controller whose pods are to go."""
    if made.adopter.uid:
        adopter = workload_of(made.adopter, scales)
        if isinstance(adopter, Workload) and not counts(spec, adopter):
            return True
    if made.old_labels == made.new_labels:
        return False
    owner = scales.get(pod.owner) if pod.owner.uid else None
    return made.leaves(spec) or (
        owner is not None and owner.selector.matches(made.old_labels) and not owner.selector.matches(made.new_labels)
    )


def _judge(
    budget: PodUnavailableBudget,
    operation: Operation,
    disruption: Disruption,
    pod: Pod,
    lister: Lister,
    now: float,
    *,
    mine: bool,
    several: bool,
) -> _Verdict:
    """What one budget says. `mine`: this request has recorded itself here. `several`: another budget may refuse the
    request, so its record may be taken back; a request that passes on a record therefore writes it again.

    The disruption of a pod that is not available is recorded too, and takes no slot: the pod may become available
    before the request takes effect. Only if the status has no room for the record, it passes without one.
    """
    status = budget.status
    records = records_for(status, operation)
    known = records.get(pod.uid) if records else None
    shows = _shows(operation, disruption, pod, budget.spec, lister.scales(pod.namespace))
    repeated = known is not None and known.shows == shows
    if mine or (repeated and known is not None and is_fresh(known, now) and not several):
        return _PASSES
    found, seen = lister.counted(budget)
    wanted = version_number(status.pods_resource_version)
    if pod.available:  # older pods may have its predecessor of the same name, which would count beside it
        wanted = max(wanted, pod.version)
    if seen < wanted:
        return AwaitPods(budget, wanted)
    if found.unread:
        return ReadOwners(found.unread)
    away = recorded(status)
    itself = pod.packed_uid in found.available and pod.packed_uid not in away
    others = len(found.available) - len(found.available & away) - itself
    after = Numbers(found.total, found.desired, others)
    charged = pod.available
    if operation == Operation.EVICT and charged and not disruption.break_glass:
        pdb = lister.blocking_pdb(pod)
        if pdb:
            return Refused(texts.blocked_by_pdb(pdb), by_pdb=True)
    refusal = ""
    if not charged:
        changing = known is not None and not repeated
        refusal = "" if changing else _unhealthy(budget, pod, after)
    elif others < found.desired:
        counts_itself = pod.packed_uid not in away
        refusal = texts.exceeded(budget, Numbers(found.total, found.desired, others + counts_itself))
    if not refusal and known is None and is_full(status):
        if not charged:
            return _PASSES
        refusal = texts.full(budget)
        if disruption.break_glass:
            return _Next(texts.passed_by_break_glass(refusal), covered=True)
    if refusal and not disruption.break_glass:
        return _refused(budget, refusal, found, after)
    both = shows if known is None or repeated or not known.shows else merged(known.shows, shows)
    # who passed with break glass once is reported, even if a repeated request would be admitted without it
    broken = bool(refusal) or (known is not None and known.break_glass)
    by = known.by if known is not None and known.break_glass and not refusal else disruption.by[:MAX_BY]
    return _Charge(record(pod.name, operation, now, by, both, break_glass=broken), pod, after, refusal)


def _unhealthy(budget: PodUnavailableBudget, pod: Pod, after: Numbers) -> str:
    """Why a pod that is not available may not be disrupted; empty: it may. Under `IfHealthyBudget` it may while enough
    others are available. A pod that never started serves nobody, as for PodDisruptionBudgets."""
    healthy = pod.pending or after.current >= after.desired
    if budget.spec.unhealthy_pod_policy != UnhealthyPodPolicy.IF_HEALTHY_BUDGET or healthy:
        return ""
    return texts.exceeded(budget, after)


def _refused(budget: PodUnavailableBudget, message: str, found: Counted, after: Numbers) -> _Verdict:
    if budget.spec.mode == BudgetMode.WARN:
        return _Next(texts.only_warned(message), covered=True)
    return Refused(message, (*texts.unavailable(budget, found), texts.way_out(budget, after)))


def _shows(
    operation: Operation, disruption: Disruption, pod: Pod, spec: PodUnavailableBudgetSpec, scales: Scales
) -> str:
    match operation:
        case Operation.RESTART:
            ids = dict(disruption.container_ids)
            mark = mark_of(disruption.request_name)
            return bounded(shows_restart(pod, disruption.restarts, mark, {**pod.container_ids(), **ids}))
        case Operation.UPDATE | Operation.RESIZE:
            left = _leaves(spec, disruption.changes, pod, scales)
            return shows_of(disruption.changes, pod, disruption.generation, left=left)
        case _:
            return ""
