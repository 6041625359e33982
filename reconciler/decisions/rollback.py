"""When a release is undone, and to what.

The intent is stored first (`Rollback`, `rollbackTo`, condition RolledBack=False), then the old template is
released again, then the failed version's record is closed (`Failed`, RolledBack=True). Each step is one write and
follows from the last, so a crash in between only delays the next one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from altershield.api import names
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadStatus, ConditionType, WorkloadState
from altershield.api.meta import Condition, find_condition, plain_time, set_condition, unix
from altershield.api.views import Deployment, Pod, ReplicaSet
from reconciler.decisions import pods as facts
from reconciler.decisions.effects import Announce, Effect, ReleaseAgain, Requeue


class RollbackReason:
    """Reasons of the condition RolledBack."""

    POD_NOT_UP = "PodNotUp"
    """A pod did not come up in time, or could not even be made."""
    REQUESTED = "Requested"
    """A person wrote `status.status: Rollback`."""
    NO_TARGET = "NoTarget"
    """It was requested, but nothing is there to go back to."""
    NO_HEALTHY_VERSION = "NoHealthyVersion"
    """No older ReplicaSet runs with all its pods ready."""
    RECREATE = "StrategyRecreate"
    """The Deployment's strategy is none that keeps old pods."""
    PAUSED = "Paused"
    """The Deployment is."""
    RELEASED_AGAIN = "ReleasedAgain"
    """It was rolled back before, and released again on purpose."""
    ALREADY_ROLLED_BACK = "AlreadyRolledBack"
    """And again a pod does not come up; nobody rolls it back in a loop."""
    SUPERSEDED = "Superseded"
    """Another version was released before the old one could be."""


_INTENTS = (RollbackReason.POD_NOT_UP, RollbackReason.REQUESTED)


@dataclass(frozen=True, slots=True)
class Target:
    """A ReplicaSet of another version of the same Deployment."""

    replica_set: ReplicaSet
    successful: bool
    """Its version's ChangeWorkload is there and says Success."""
    rolled_back: bool
    """Its version is itself one that failed and was (or is being) undone."""

    @property
    def healthy(self) -> bool:
        """Whether it runs and serves, as far as its controller has caught up with its spec."""
        spec, status = self.replica_set.spec, self.replica_set.status
        return (
            spec.replicas > 0
            and status.ready_replicas >= spec.replicas
            and status.observed_generation >= self.replica_set.metadata.generation
        )


@dataclass(frozen=True, slots=True)
class Observed:
    change_workload: ChangeWorkload
    deployment: Deployment | None
    """None where it is gone, or no longer carries any version."""
    pods: Sequence[Pod]
    """Of this version and Deployment, as are the `replica_sets`."""
    replica_sets: Sequence[ReplicaSet]
    targets: Sequence[Target]
    start_timeout: float


def overdue(
    pods: Iterable[Pod], replica_sets: Iterable[ReplicaSet], start_timeout: float, now: float
) -> tuple[str, float | None]:
    """What has not come up in time, in words, empty for nothing; and in how many seconds the next will be late."""
    pending = [(unix(pod.metadata.creation_timestamp), pod) for pod in pods if facts.exists(pod) and not _up(pod)]
    barren = [(unix(why.last_transition_time), why.message) for each in replica_sets if (why := each.barren)]
    waits = [since + start_timeout - now for since, _ in (*pending, *barren)]
    late = [pod for since, pod in pending if since + start_timeout <= now]
    refused = [(since, message) for since, message in barren if since + start_timeout <= now]
    return (
        _late(late, now) if late else _refused(*min(refused), now) if refused else "",
        min((wait for wait in waits if wait > 0), default=None),
    )


def decide(
    state: ChangeWorkloadStatus, observed: Observed, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    """The status that should be stored, and what to do."""
    if state.status == WorkloadState.ROLLBACK:
        return _carry_out(state, observed, now)
    if state.status in (WorkloadState.SUCCESS, WorkloadState.FAILED) or observed.deployment is None:
        return state, ()
    why, wait = overdue(observed.pods, observed.replica_sets, observed.start_timeout, now)
    if not why:
        return state, () if wait is None else (Requeue(wait),)
    refusal, message = _refusal(state, observed.deployment)
    target = _best(target for target in observed.targets if target.healthy)
    if refusal is None and target is None:
        refusal = RollbackReason.NO_HEALTHY_VERSION
        message = "no older ReplicaSet runs with all its pods ready"
    if refusal is None and target is not None:
        return _intend(state, observed, target, RollbackReason.POD_NOT_UP, why, now)
    known = find_condition(state.conditions, ConditionType.ROLLED_BACK)
    if known is not None and known.reason == refusal:
        return state, ()
    message = f"{why}; not rolled back, because {message}"
    return (
        _with_condition(state, observed, "False", refusal or "", message, now),
        (Announce("RollbackImpossible", message),),
    )


def _up(pod: Pod) -> bool:
    return (facts.finished(pod) or facts.ready(pod)) and not facts.crash_looping(pod)


def _late(late: Sequence[Pod], now: float) -> str:
    pod = min(late, key=lambda pod: (unix(pod.metadata.creation_timestamp), pod.metadata.name))
    age = int(now - unix(pod.metadata.creation_timestamp))
    others = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
    return f"pod {pod.metadata.name}{others} is not up after {age} s: {facts.trouble(pod) or pod.status.phase}"


def _refused(since: float, message: str, now: float) -> str:
    return f"its pods cannot be created for {int(now - since)} s now: {facts.clip(message)}"


def _refusal(state: ChangeWorkloadStatus, deployment: Deployment) -> tuple[str | None, str]:
    known = find_condition(state.conditions, ConditionType.ROLLED_BACK)
    if known is not None and known.reason in (RollbackReason.RELEASED_AGAIN, RollbackReason.ALREADY_ROLLED_BACK):
        return RollbackReason.ALREADY_ROLLED_BACK, "this version was rolled back once before"
    if deployment.spec.strategy.type != "RollingUpdate":
        return RollbackReason.RECREATE, f"the strategy of the Deployment is {deployment.spec.strategy.type}"
    if deployment.spec.paused:
        return RollbackReason.PAUSED, "the Deployment is paused"
    return None, ""


def _carry_out(
    state: ChangeWorkloadStatus, observed: Observed, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    known = find_condition(state.conditions, ConditionType.ROLLED_BACK)
    intent = known if known is not None and known.reason in _INTENTS else None
    version = names.version_of(observed.change_workload.metadata.name)
    present = observed.deployment.version if observed.deployment is not None else ""
    if present != version:
        if intent is not None and state.rollback_to in ("", present):
            return _close(state, observed, intent, present, now)
        message = f"version {present or 'none'} was released before version {version} could be rolled back"
        state = _with_condition(state, observed, "False", RollbackReason.SUPERSEDED, message, now)
        return _entered(state, WorkloadState.FAILED, now), ()
    if intent is None:
        target = _requested(state, observed.targets)
        if target is not None:
            return _intend(state, observed, target, RollbackReason.REQUESTED, "it was asked for", now)
        return _give_up(state, observed, "there is no older version to go back to", now)
    target = _newest(t for t in observed.targets if t.replica_set.version == state.rollback_to)
    if target is None:
        return _give_up(state, observed, "the ReplicaSet to go back to is gone", now)
    return state, (ReleaseAgain(target.replica_set),)


def _requested(state: ChangeWorkloadStatus, targets: Sequence[Target]) -> Target | None:
    """What a person who asks for a rollback gets: the version named, else the last good one, else the last."""
    if state.rollback_to:
        return _newest(target for target in targets if target.replica_set.version == state.rollback_to)
    return _best(targets)


def _best(targets: Iterable[Target]) -> Target | None:
    """The last one that was verified, else the last one; never one that was itself rolled back."""
    good = [target for target in targets if not target.rolled_back]
    return _newest(target for target in good if target.successful) or _newest(good)


def _newest(targets: Iterable[Target]) -> Target | None:
    return max(
        targets, key=lambda target: (target.replica_set.revision, target.replica_set.metadata.name), default=None
    )


def _intend(
    state: ChangeWorkloadStatus, observed: Observed, target: Target, reason: str, why: str, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    version = target.replica_set.version
    message = f"{why}; releasing {_version(version)} of ReplicaSet {target.replica_set.metadata.name} again"
    state = _with_condition(state, observed, "False", reason, message, now)
    state = msgspec.structs.replace(state, rollback_to=version)
    return _entered(state, WorkloadState.ROLLBACK, now), (Announce("RollbackStarted", message), Requeue(0))


def _close(
    state: ChangeWorkloadStatus, observed: Observed, intent: Condition, present: str, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    why = intent.message.rpartition("; ")[0]
    message = f"{why}; {_version(present)} was released again at {plain_time(now)}"
    state = _with_condition(state, observed, "True", intent.reason, message, now)
    state = msgspec.structs.replace(state, rollback_to=present)
    version = names.version_of(observed.change_workload.metadata.name)
    announcement = Announce("RolledBack", f"version {version} was rolled back: {message}")
    return _entered(state, WorkloadState.FAILED, now), (announcement,)


def _give_up(
    state: ChangeWorkloadStatus, observed: Observed, message: str, now: float
) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    """Back to Init, from where the state is derived anew."""
    message = f"a rollback was asked for, but {message}"
    state = _with_condition(state, observed, "False", RollbackReason.NO_TARGET, message, now)
    state = msgspec.structs.replace(state, rollback_to="")
    return _entered(state, WorkloadState.INIT, now), (Announce("RollbackImpossible", message),)


def _version(version: str) -> str:
    return f"version {version}" if version else "the version from before AlterShield"


def _with_condition(
    state: ChangeWorkloadStatus, observed: Observed, status: str, reason: str, message: str, now: float
) -> ChangeWorkloadStatus:
    generation = observed.change_workload.metadata.generation
    condition = Condition(ConditionType.ROLLED_BACK, status, reason, message, observed_generation=generation)
    return msgspec.structs.replace(
        state,
        conditions=set_condition(state.conditions, condition, now),
        update_time=plain_time(now),
        update_time_unix=int(now),
    )


def _entered(state: ChangeWorkloadStatus, name: str, now: float) -> ChangeWorkloadStatus:
    return msgspec.structs.replace(state, status=name, entry_time=plain_time(now), entry_time_unix=int(now))
