"""The state machine of a ChangeWorkload: one version of a workload, from its release to its verdict.

The verdict is derived from the pods that exist and from their ChangePods, each time anew; the status remembers
only which state was entered when. So a decision repeated, late or after a crash, comes out the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from altershield.api import labels, names
from altershield.api.kinds import (
    PASS,
    ChangePod,
    ChangeWorkload,
    ChangeWorkloadStatus,
    ConditionType,
    PodInfo,
    PodState,
    WorkloadState,
)
from altershield.api.meta import Condition, plain_time, set_condition
from altershield.api.ops_config import Settings
from altershield.api.views import Deployment, Pod
from reconciler.decisions import pods as facts
from reconciler.decisions.effects import (
    Announce,
    CreateChangePod,
    Effect,
    Remove,
    Requeue,
    Resume,
    SetThreshold,
    Suspend,
)
from reconciler.decisions.rollback import RollbackReason

LISTS_INTERVAL = 30
"""Seconds between status writes that only bring the lists up to date. A new state or a failure is written at once."""

PROGRESS = 5
"""Pods that passed since the last write and are worth one earlier, so that it costs each of them little."""

PROGRESS_INTERVAL = 5
"""Seconds between such earlier writes."""

KEPT_RECORDS = 20
"""ChangePods kept per version after all of their pods are gone."""

_LISTED = 2000  # pods in one status, all lists together: the object must fit into etcd's 1.5 MiB
_NAMED = 3  # failed pods that a message names
_MAX_SAID = 200  # characters of a verdict's message in the lists and messages


@dataclass(frozen=True, slots=True)
class Observed:
    """What the cluster holds. All pods and ChangePods are of this version; the version is the Deployment's."""

    change_workload: ChangeWorkload
    deployment: Deployment
    pods: Sequence[Pod]
    """Of this Deployment; those that do not count (`pods.exists`) may be among them."""
    change_pods: Sequence[ChangePod]
    highest_number: int
    """Of all ChangePods by this name, those of a deleted namesake included."""
    others: Sequence[ChangeWorkload]
    """The Deployment's other versions."""
    settings: Settings


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Where each existing pod that came up stands."""

    preparing: tuple[PodInfo, ...]
    """Waiting for a batch; the one that came up first leads."""
    checking: tuple[PodInfo, ...]
    passed: tuple[PodInfo, ...]
    failed: tuple[PodInfo, ...]


def decide(
    state: ChangeWorkloadStatus, observed: Observed, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    """The status that should be stored (`state` itself where nothing is to be written now), and what to do."""
    if state.status in (WorkloadState.FAILED, WorkloadState.ROLLBACK):
        return state, ()
    existing = [pod for pod in observed.pods if facts.exists(pod)]
    verdicts = judge(existing, observed.change_pods, observed.change_workload.spec.service_name)
    target = _target(existing, verdicts, state, observed.deployment.spec.replicas)
    size = observed.settings.batch(observed.deployment.spec.replicas)
    batches, overdue, wake = _batches(verdicts.preparing, existing, size, _wait(observed), now)
    if overdue and target == WorkloadState.RUNNING and state.status == WorkloadState.RUNNING:
        target, wake = WorkloadState.TIME_OUT_PRE_THRESHOLD, 0.0
    elif overdue and (target != WorkloadState.RUNNING or state.status == WorkloadState.TIME_OUT_PRE_THRESHOLD):
        batches = (*batches, overdue)
    elif overdue:
        wake = 0.0  # it has only now begun to run: the next decision calls the time-out
    verdicts = _taken(verdicts, batches)

    effects: list[Effect] = [
        CreateChangePod(observed.highest_number + offset, batch) for offset, batch in enumerate(batches, start=1)
    ]
    if observed.change_workload.spec.count_threshold != size:
        effects.append(SetThreshold(size))
    message = _summary(verdicts, existing, observed.deployment.spec.replicas)
    effects += _label(state.status, target, observed, now)
    effects += _events(state.status, target, observed, message)
    if target == WorkloadState.SUCCESS:
        effects += [Remove(other) for other in observed.others if _obsolete(other, observed.change_workload)]
    effects += [Remove(record) for record in _surplus(existing, observed.change_pods)]

    wanted = _status(state, observed, target, verdicts, message, now)
    status, due = _coalesced(state, wanted, now)
    wakes = [seconds for seconds in (wake, due) if seconds is not None]
    if wakes:
        effects.append(Requeue(min(wakes)))
    return status, tuple(effects)


def judge(existing: Iterable[Pod], change_pods: Iterable[ChangePod], workload: str) -> Verdicts:
    """Sort the pods that came up by what their newest ChangePod says of them.

    An explicit verdict counts at once, whoever wrote it; without one, a pod of a finished ChangePod has passed.
    """
    newest: dict[str, tuple[PodInfo, bool]] = {}
    for change_pod in sorted(change_pods, key=lambda record: names.change_pod_number(record.metadata.name)):
        results = {result.pod: result for result in change_pod.status.pod_results if result.verdict}
        done = change_pod.status.status == PodState.EXECUTE_DONE
        for info in change_pod.spec.pod_infos:
            said = results.get(info.pod, info)
            judged = msgspec.structs.replace(info, verdict=said.verdict, message=said.message[:_MAX_SAID])
            newest[info.pod] = (judged, done)

    preparing: list[PodInfo] = []
    checking: list[PodInfo] = []
    passed: list[PodInfo] = []
    failed: list[PodInfo] = []
    for pod in sorted(existing, key=lambda pod: (facts.finished_at(pod), pod.metadata.name)):
        if not facts.finished(pod):
            continue
        if pod.metadata.name not in newest:
            preparing.append(facts.info(pod, workload))
            continue
        known, done = newest[pod.metadata.name]
        if known.verdict and known.verdict != PASS:
            failed.append(known)
        elif known.verdict or done:
            passed.append(known)
        else:
            checking.append(known)
    return Verdicts(tuple(preparing), tuple(checking), tuple(passed), tuple(failed))


def _target(existing: Sequence[Pod], verdicts: Verdicts, state: ChangeWorkloadStatus, replicas: int) -> str:
    if verdicts.failed:
        return WorkloadState.SUSPEND
    complete = replicas == 0 or (
        len(existing) >= replicas
        and len(verdicts.passed) == len(existing)
        and not any(facts.crash_looping(pod) for pod in existing)
    )
    # pods that come after a success (scaled up, replaced) are verified without taking it back
    if complete or state.status == WorkloadState.SUCCESS:
        return WorkloadState.SUCCESS
    return WorkloadState.RUNNING


def _wait(observed: Observed) -> int:
    return observed.change_workload.spec.wait_time_threshold


def _batches(
    preparing: tuple[PodInfo, ...], existing: Sequence[Pod], size: int, wait: int, now: float
) -> tuple[tuple[tuple[PodInfo, ...], ...], tuple[PodInfo, ...], float | None]:
    """The full batches, the incomplete one if it has waited long enough, else in how many seconds it will have."""
    full = len(preparing) // size * size
    batches = tuple(preparing[start : start + size] for start in range(0, full, size))
    rest = preparing[full:]
    if not rest:
        return batches, (), None
    oldest = next(facts.finished_at(pod) for pod in existing if pod.metadata.name == rest[0].pod)
    left = oldest + wait - now
    return (batches, rest, None) if left <= 0 else (batches, (), left)


def _taken(verdicts: Verdicts, batches: tuple[tuple[PodInfo, ...], ...]) -> Verdicts:
    """`verdicts` once the batches are under way."""
    taken = tuple(pod for batch in batches for pod in batch)  # always the first of those that wait
    return Verdicts(verdicts.preparing[len(taken) :], verdicts.checking + taken, verdicts.passed, verdicts.failed)


def _label(old: str, new: str, observed: Observed, now: float) -> list[Effect]:
    suspended = labels.SUSPEND in observed.deployment.metadata.labels
    if new == WorkloadState.SUSPEND:
        return [Suspend(int(now))] if observed.settings.blocking and not suspended else []
    # while a repair runs, the suspension it repairs stays
    cleared = new == WorkloadState.SUCCESS or old == WorkloadState.SUSPEND
    return [Resume()] if suspended and cleared else []


def _events(old: str, new: str, observed: Observed, message: str) -> list[Effect]:
    version = names.version_of(observed.change_workload.metadata.name)
    if new == WorkloadState.SUSPEND and old != new:
        consequence = (
            "further releases are denied until it is repaired"
            if observed.settings.blocking
            else "the setting `blocking` is off, so further releases are let through"
        )
        return [Announce("ReleaseSuspended", f"version {version}: {message}; {consequence}")]
    if old == WorkloadState.SUSPEND and new != old:
        return [Announce("ReleaseResumed", f"version {version}: {message}", warning=False)]
    return []


def _obsolete(other: ChangeWorkload, current: ChangeWorkload) -> bool:
    """Whether the success of `current` makes the record of another version superfluous."""
    if _released(other) > _released(current):
        return False  # the caches disagree: this one is newer than the Deployment that we see
    # what was rolled back to this version must stay known
    return other.status.rollback_to != names.version_of(current.metadata.name)


def _released(record: ChangeWorkload) -> tuple[int, int]:
    """Orders the releases of one Deployment."""
    generation = record.spec.reversion
    return record.spec.create_time_unix, int(generation) if generation.isascii() and generation.isdigit() else 0


def _surplus(existing: Iterable[Pod], change_pods: Iterable[ChangePod]) -> list[ChangePod]:
    """The oldest ChangePods of which no pod exists any more, past those that are kept."""
    alive = {pod.metadata.name for pod in existing}
    gone = [record for record in change_pods if not any(pod.pod in alive for pod in record.spec.pod_infos)]
    gone.sort(key=lambda record: names.change_pod_number(record.metadata.name))
    return gone[:-KEPT_RECORDS]


def _summary(verdicts: Verdicts, existing: Sequence[Pod], replicas: int) -> str:
    """Where the release stands, in one sentence."""
    if verdicts.failed:
        named = "; ".join(f"{pod.pod} ({pod.message or pod.verdict})" for pod in verdicts.failed[:_NAMED])
        more = f" and {len(verdicts.failed) - _NAMED} more" if len(verdicts.failed) > _NAMED else ""
        return f"{len(verdicts.failed)} of {len(existing)} pods failed verification: {named}{more}"
    total = max(replicas, len(existing))
    came_up = sum(map(len, (verdicts.preparing, verdicts.checking, verdicts.passed)))
    rest = (
        (total - came_up, "not up"),
        (len(verdicts.preparing), "waiting to be verified"),
        (len(verdicts.checking), "being verified"),
        (sum(map(facts.crash_looping, existing)), "crashing again and again"),
    )
    return ", ".join(
        [f"{len(verdicts.passed)} of {total} pods passed", *(f"{count} {what}" for count, what in rest if count)]
    )


def _status(
    state: ChangeWorkloadStatus, observed: Observed, target: str, verdicts: Verdicts, message: str, now: float
) -> ChangeWorkloadStatus:
    generation = observed.change_workload.metadata.generation
    status, reason = {
        WorkloadState.SUSPEND: ("False", "PodsFailed"),
        WorkloadState.SUCCESS: ("True", "PodsPassed"),
    }.get(target, ("Unknown", "InProgress"))
    conditions = state.conditions
    if target == WorkloadState.SUCCESS:  # it came up after all: why it was not rolled back is history
        conditions = tuple(
            c for c in conditions if c.type != ConditionType.ROLLED_BACK or c.reason == RollbackReason.NO_TARGET
        )
    room = _LISTED
    lists = []
    for pods in (verdicts.failed, verdicts.checking, verdicts.preparing, verdicts.passed):
        lists.append(pods[:room])
        room -= len(lists[-1])
    failed, checking, preparing, passed = lists
    wanted = msgspec.structs.replace(
        state,
        status=target,
        defense_preparing_pods=preparing,
        defense_checking_pods=checking,
        defense_check_pass_pods=passed,
        defense_check_fail_pods=failed,
        conditions=set_condition(
            conditions,
            Condition(ConditionType.VERIFIED, status, reason, message, observed_generation=generation),
            now,
        ),
        observed_generation=generation,
    )
    if target != state.status:
        wanted = msgspec.structs.replace(wanted, entry_time=plain_time(now), entry_time_unix=int(now))
    return wanted


def _coalesced(
    state: ChangeWorkloadStatus, wanted: ChangeWorkloadStatus, now: float
) -> tuple[ChangeWorkloadStatus, float | None]:
    """`wanted` stamped, if it is to be written now; else `state`, and in how many seconds it is to be."""
    if wanted == state:
        return state, None
    urgent = wanted.status != state.status or wanted.defense_check_fail_pods != state.defense_check_fail_pods
    progress = len(wanted.defense_check_pass_pods) - len(state.defense_check_pass_pods)
    interval = PROGRESS_INTERVAL if progress >= PROGRESS else LISTS_INTERVAL
    left = state.update_time_unix + interval - now
    if not urgent and 0 < left <= interval:
        return state, left
    return msgspec.structs.replace(wanted, update_time=plain_time(now), update_time_unix=int(now)), None
