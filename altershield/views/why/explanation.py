"""Explains the state of a workload's release, from what was read. Pure functions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from altershield import releases
from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.check_results import CheckState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.policy import OnPauseEnd
from altershield.gates import texts
from altershield.gates.release import Closed
from altershield.releases.enforcement import only_text
from altershield.releases.texts import why_failed
from altershield.views.document import time
from altershield.views.names import workload_of
from altershield.views.releases.model import Release, waits
from altershield.views.releases.steps import steps_of
from altershield.views.why.advice import Proposal, proposals
from altershield.views.why.model import (
    Advice,
    BlockingPod,
    CheckRun,
    ClosedGate,
    Decided,
    EarlierVersion,
    Pause,
    PendingRequest,
    PodWords,
    Policy,
    ReleaseExplanation,
    Suspension,
)
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339

_MAX_DELETED = 8  # pods that a command names


class Facts(NamedTuple):
    """What was read about one workload."""

    releases: Sequence[Release]
    """Its versions."""
    batches: Sequence[ChangePod]
    """The ChangePods of the present version."""
    blocking: Sequence[Pod]
    """The pods of older versions for which the workload's controller waits."""
    closed: Sequence[Closed]
    """The gates that are closed for the next release."""
    now: float
    """Unix seconds."""

    @property
    def present(self) -> Release:
        return next((each for each in self.releases if each.present), self.releases[-1])

    @property
    def change(self) -> ChangeWorkload | None:
        """The ChangeWorkload of the present version; None if it has not been processed."""
        present = self.present
        return present.stored.release if present.stored is not None and not present.pending else None

    @property
    def earlier(self) -> list[tuple[Release, ChangeWorkload]]:
        """The other versions, with their ChangeWorkloads."""
        others = ((each, each.stored) for each in self.releases if each is not self.present)
        return [(each, stored.release) for each, stored in others if stored is not None]


def proposed(facts: Facts, program: str) -> list[Proposal]:
    """What to do. `program`: the beginning of AlterShield's commands."""
    return proposals(
        facts.change,
        facts.present.workload,
        program,
        denied=[change for _, change in facts.earlier if releases.rolled_back(change)],
        blocking=facts.blocking[:_MAX_DELETED],
        closed=facts.closed,
    )


def explanation(facts: Facts, advice: tuple[Advice, ...]) -> ReleaseExplanation:
    """What is so, and why."""
    present, change = facts.present, facts.change
    workload = present.workload
    metadata = workload.metadata
    policy = change.spec.policy if change is not None else None
    settling = releases.unsettled(change) if change is not None else None
    request = change.status.request if change is not None else None
    return ReleaseExplanation(
        workload=workload_of(BY_KIND[workload.group_kind].resource, metadata.namespace, metadata.name),
        time=rfc3339(facts.now),
        state=str(releases.state(change) if change is not None else WorkloadState.INIT),
        waits="" if change is not None else waits(present),
        since=time(releases.since(change)) if change is not None else None,
        version=present.version,
        images=present.images,
        released=time(change.spec.create_time_unix) if change is not None else None,
        reason=present.message if change is not None else "",
        suspension=_suspension(workload),
        restored_fields=_restored(change) if change is not None else "",
        policy=Policy(policy.namespace, policy.name, _only(only_text(policy))) if policy and policy.name else None,
        not_settled=settling.message if settling is not None else "",
        pause=_pause(change) if change is not None and workload.held else None,
        failed_by=str(releases.failed_by(change)) if change is not None else "",
        checks=tuple(_checks(facts.batches)) if change is not None else (),
        blocking_pods=tuple(_blocking(facts)),
        gates=tuple(map(_gate, facts.closed)),
        steps=steps_of(present, facts.batches, facts.now) if change is not None else None,
        failed_pods=tuple(_failed(change)) if change is not None else (),
        down_pods=tuple(_down(change)) if change is not None else (),
        restarted_pods=tuple(_restarted(change)) if change is not None else (),
        request=PendingRequest(str(request.verb), request.by, request.reason) if request is not None else None,
        decisions=tuple(_decided(change)) if change is not None else (),
        earlier=tuple(_earlier(facts.earlier)),
        advice=advice,
    )


def _suspension(workload: Workload) -> Suspension | None:
    if not workload.suspended:
        return None
    since = int(workload.suspended) if workload.suspended.isdecimal() else 0
    return Suspension(time(since), workload.ignores_suspension)


def _restored(change: ChangeWorkload) -> str:
    left = find_condition(change.status.conditions, ConditionType.RESTORED_FIELDS)
    return left.message if left is not None and left.is_true else ""


def _only(text: str) -> str:
    return f"{text}, so nothing is suspended, paused or rolled back" if text else ""


def _pause(change: ChangeWorkload) -> Pause:
    """When the pause of the rollout ends, and what follows."""
    end = change.status.pause
    if not end.end_time_unix or end.ended:
        return Pause(None, None)
    return Pause(rfc3339(end.end_time_unix), change.spec.policy.on_pause_end is OnPauseEnd.CONTINUE)


def _checks(batches: Sequence[ChangePod]) -> Iterator[CheckRun]:
    for state in (CheckState.FAILED, CheckState.UNKNOWN, CheckState.RUNNING):
        for batch in batches:
            for each in batch.status.checks:
                unreported = not batch.status.change_pod_id and not each.handle
                if each.state == state and not (state is CheckState.UNKNOWN and unreported):
                    phase = batch.spec.phase or each.phase
                    yield CheckRun(each.name, phase, batch.metadata.name, str(each.state), each.reason)


def _blocking(facts: Facts) -> Iterator[BlockingPod]:
    """A pod blocks the rollout since the release of the present version at the earliest."""
    released = facts.change.spec.create_time_unix if facts.change is not None else 0
    for pod in facts.blocking:
        since = max(released, pod.ready_at or pod.metadata.created)
        yield BlockingPod(pod.metadata.name, time(since), str(pod.trouble) if pod.trouble is not None else "")


def _gate(closed: Closed) -> ClosedGate:
    return ClosedGate(
        kind=closed.kind,
        namespace=closed.namespace,
        name=closed.name,
        enforced=closed.enforced,
        since=closed.since or None,
        opens_at=closed.opens_at or None,
        reason=closed.reason,
        message=texts.sentence(closed),
    )


def _failed(change: ChangeWorkload) -> Iterator[PodWords]:
    return (PodWords(each.pod, why_failed(each)) for each in releases.failures(change))


def _down(change: ChangeWorkload) -> Iterator[PodWords]:
    failed = {each.pod for each in releases.failures(change)}
    down = (each for each in change.status.down_pods if each.pod not in failed)
    return (PodWords(each.pod, each.message or "not ready") for each in down)


def _restarted(change: ChangeWorkload) -> Iterator[PodWords]:
    return (PodWords(each.pod, each.message) for each in change.status.settling.restarting)


def _decided(change: ChangeWorkload) -> Iterator[Decided]:
    for each in reversed(change.status.actions):
        yield Decided(each.time or None, str(each.verb), each.by, each.reason, str(each.result), each.outcome)


def _earlier(versions: Sequence[tuple[Release, ChangeWorkload]]) -> Iterator[EarlierVersion]:
    for release, change in versions:
        denied = releases.rolled_back(change)
        if denied or releases.state(change) is WorkloadState.SUSPEND:
            reason = releases.why(change, current=True).removeprefix("" if denied else "failed: ")
            yield EarlierVersion(release.version, release.images, denied, time(releases.since(change)), reason)
