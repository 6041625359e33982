"""What `altershield budgets` says about a PodUnavailableBudget. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from altershield.api.budgets import BudgetCondition, BudgetMode, DisruptionRecord, Operation, PodUnavailableBudget
from altershield.api.meta import find_condition
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from altershield.budgets.coverage import Scales, covers, is_ignored
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Numbers, counted, numbers, recorded
from altershield.budgets.pods import Flag, Pod
from altershield.budgets.records import admitted_at, runs_out
from altershield.views.durations import age


class Record(NamedTuple):
    """A disruption that was admitted, and that its pod does not show yet."""

    pod: str
    operation: Operation
    by: str
    since: float
    """Unix seconds."""
    runs_out: float
    """When the record is dropped if nothing happens to the pod, in Unix seconds."""


class Away(NamedTuple):
    """A pod that is not available."""

    pod: str
    why: str


class Figures(NamedTuple):
    """A budget as it is shown."""

    budget: PodUnavailableBudget
    numbers: Numbers | None
    """None: no reconciler has counted the pods yet."""
    records: Sequence[Record]
    problems: Sequence[str]

    @property
    def exhausted(self) -> bool:
        """Whether a disruption of an available pod would be refused now."""
        enforced = self.budget.spec.mode == BudgetMode.ENFORCE
        return enforced and self.numbers is not None and self.numbers.allowed == 0


class Detail(NamedTuple):
    """A budget, and what keeps its pods away."""

    figures: Figures
    away: Sequence[Away]
    missing: int
    """How many pods should be there and are not."""
    blocking: Sequence[str]
    """The names of PodDisruptionBudgets that allow no eviction of a pod of the budget now."""


class Surroundings(NamedTuple):
    """What was read of the namespace of a budget."""

    pods: PodIndex
    scales: Scales
    troubles: Mapping[str, str]
    """Why pods are not ready, in the kubelet's or the scheduler's words, by uid."""
    disruption_budgets: Iterable[DisruptionBudget]


def figures(budget: PodUnavailableBudget, now: float) -> Figures:
    """The budget with the numbers of its status."""
    status = budget.status
    known = Numbers(status.total_replicas, status.desired_available, status.current_available)
    return Figures(
        budget, known if status.observed_generation else None, _records(budget, now), tuple(_problems(budget))
    )


def detail(budget: PodUnavailableBudget, around: Surroundings, now: float) -> Detail:
    """The budget with numbers that are counted now."""
    groups = around.pods.groups(budget.metadata.namespace)
    found = counted(budget, groups, around.scales)
    records = {**budget.status.disrupted_pods, **budget.status.unavailable_pods}
    marked = recorded(budget.status)
    away = [
        Away(pod.name, _why(pod, records.get(pod.uid), around.troubles))
        for uid, pod in found.pods.items()
        if uid not in found.available or uid in marked
    ]
    away += [
        Away(pod.name, "it is terminating")
        for group in groups
        if covers(budget.spec, group.owner, group.labels, around.scales) and not is_ignored(budget.spec, group.labels)
        for pod in group.pods.values()
        if pod.terminating
    ]
    blocking = [each for each in around.disruption_budgets if any(map(each.blocks, found.pods.values()))]
    return Detail(
        figures(budget, now)._replace(numbers=numbers(found, budget.status)),
        sorted(away),
        max(0, found.total - len(found.pods)),
        sorted(each.metadata.name for each in blocking),
    )


def _records(budget: PodUnavailableBudget, now: float) -> list[Record]:
    status = budget.status
    both = (*status.disrupted_pods.values(), *status.unavailable_pods.values())
    found = [Record(each.name, each.operation, each.by, admitted_at(each, now), runs_out(each, now)) for each in both]
    return sorted(found, key=lambda each: (each.since, each.pod))


def _problems(budget: PodUnavailableBudget) -> Iterator[str]:
    """What is wrong with a budget, or keeps it from admitting disruptions."""
    metadata, status = budget.metadata, budget.status
    if metadata.deletion_timestamp is not None:
        yield "it is being deleted, and refuses nothing"
    if not status.observed_generation:
        yield (
            "no reconciler has counted its pods yet: check that the reconciler runs and that the namespace is governed "
            f"(kubectl get namespace {metadata.namespace} --show-labels)"
        )
    elif status.observed_generation < metadata.generation:
        yield "the status does not describe the present spec yet"
    overlapping = find_condition(status.conditions, BudgetCondition.OVERLAPPING)
    if overlapping is not None and overlapping.status == "True":
        yield overlapping.message
    allowed = find_condition(status.conditions, BudgetCondition.ALLOWED)
    if allowed is not None and allowed.status == "False":
        yield allowed.message


def _why(pod: Pod, record: DisruptionRecord | None, troubles: Mapping[str, str]) -> str:
    if record is not None:
        return f"{record.operation} by {record.by} was admitted at {record.time}"
    if pod.flags & Flag.OUT_OF_SERVICE:
        return "a label takes it out of service"
    if pod.flags & Flag.UPDATING:
        return "OpenKruise updates it in place"
    return troubles.get(pod.uid) or ("it is pending" if pod.pending else "it is not ready")


def record_line(record: Record, now: float) -> str:
    """A record, without the name of its pod."""
    left = record.runs_out - now
    end = f"the record runs out in {age(left)}" if left > 0 else "the record has run out"
    return f"{record.operation} by {record.by or 'an unnamed user'} {age(max(0.0, now - record.since))} ago; {end}"
