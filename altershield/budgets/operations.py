"""Which operation a request is for one budget, and how the pod will show the disruption."""

from altershield.api.budgets import Operation, PodUnavailableBudgetSpec
from altershield.budgets.changes import Changes, bounded, digest_of, shows_of, shows_restart
from altershield.budgets.coverage import Scales, Workload, protects, unread_owner, workload_of
from altershield.budgets.numbers import counts
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption, ReadOwners
from altershield.workloads.meta import Owner

_UPDATES = (Operation.UPDATE, Operation.RESIZE)


def protected_operation(
    spec: PodUnavailableBudgetSpec, disruption: Disruption, pod: Pod, scales: Scales
) -> Operation | ReadOwners | None:
    """The operation of the request, if the budget protects the pod from it. None: the budget does not cover the pod, or
    does not protect from this operation."""
    missing = unread_owner(spec, pod.owner, scales)
    if missing is not None:
        return ReadOwners((missing,))
    if not protects(spec, pod.owner, pod.labels, scales):
        return None
    if disruption.operation not in spec.protect_operations and disruption.operation not in _UPDATES:
        return None
    workload, adopter = workload_of(pod.owner, scales), disruption.changes.adopter
    if isinstance(workload, Owner):
        return ReadOwners((workload,))
    if adopter.uid and isinstance(unread := workload_of(adopter, scales), Owner):
        return ReadOwners((unread,))
    operation = _operation(spec, disruption, pod, scales)
    return operation if operation in spec.protect_operations and counts(spec, workload) else None


def _operation(spec: PodUnavailableBudgetSpec, disruption: Disruption, pod: Pod, scales: Scales) -> Operation | None:
    """The operation of the request for this budget. None: an update that does not disrupt the pod."""
    if disruption.operation not in _UPDATES:
        return disruption.operation
    update = disruption.changes
    if update.disrupts or _leaves(spec, update, pod, scales):
        return Operation.UPDATE
    return Operation.RESIZE if update.resized else None


def _leaves(spec: PodUnavailableBudgetSpec, update: Changes, pod: Pod, scales: Scales) -> bool:
    """Whether the update takes the pod out of the budget or out of its workload: by its labels, or by a new controller
    whose pods do not count."""
    if update.adopter.uid:
        adopter = workload_of(update.adopter, scales)
        if isinstance(adopter, Workload) and not counts(spec, adopter):
            return True
    old_labels, new_labels = update.old_labels, update.new_labels
    if old_labels == new_labels:
        return False
    owner = scales.get(pod.owner) if pod.owner.uid else None
    return update.leaves(spec) or (
        owner is not None and owner.selector.matches(old_labels) and not owner.selector.matches(new_labels)
    )


def shows_disruption(
    operation: Operation, disruption: Disruption, pod: Pod, spec: PodUnavailableBudgetSpec, scales: Scales
) -> str:
    """How the pod will show the disruption, for the field `shows` of its record. Empty for a deletion or an
    eviction."""
    match operation:
        case Operation.RESTART:
            ids = dict(disruption.container_ids)
            digest = digest_of(disruption.request_name)
            return bounded(shows_restart(pod, disruption.restarts, digest, {**pod.container_ids(), **ids}))
        case Operation.UPDATE | Operation.RESIZE:
            left = _leaves(spec, disruption.changes, pod, scales)
            return shows_of(disruption.changes, pod, disruption.generation, left=left)
        case _:
            return ""
