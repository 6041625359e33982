"""Decides when a release is kept in the history of its workload, and makes its record there. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.check_results import worst_states
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.workload_requests import BYPASS, MAX_ACTIONS, Action, Result
from altershield.releases import rolled_back, state, version_of, why
from altershield.releases.enforcement import would
from altershield.releases.history import (
    MAX_EARLIER,
    MAX_FAILURES,
    MAX_RULES,
    CheckOutcome,
    Evidence,
    FailedPlace,
    Record,
    Way,
)
from altershield.workloads.pods import clip
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339, unix
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.releases.decisions.observed_steps import failed_uids, failures
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.effects import Decision, KeepHistory
from reconciler.releases.terms.snapshot import Snapshot

_ENDS = (WorkloadState.SUCCESS, WorkloadState.SUSPEND, WorkloadState.ROLLBACK, WorkloadState.FAILED)
_MAX_MESSAGE = 1024
_MAX_OUTCOME = 256  # characters of an action; the history holds many


def with_history(
    release: Release, decision: Decision, applied: str | None = None, seen: Snapshot | None = None, now: float = 0.0
) -> Decision:
    """The decision, with the effect that keeps the release in the history if one of these happens:

    - The release ends, or ends in another way than before.
    - A rollback begins. The pod template of the failed version may not exist after the rollback.
    - A person acted. The ChangeWorkload with the action is deleted after a newer version succeeds.
    - A client stored something else about the template of a release that has ended: a rollback restores it.

    `applied`: the digest of what clients stored, if the workload has this version; see `Workload.applied`. `seen`: what
    the decision was made of at `now` (Unix seconds).
    """
    before, after = release.status, decision.status or release.status
    ends = after.status in _ENDS or before.status in _ENDS
    begins_rollback = after.rollback_target != before.rollback_target and bool(after.rollback_target.uid)
    decided = any(ends or each.result == Result.DONE for each in after.actions if each not in before.actions)
    applied_anew = after.status in _ENDS and applied is not None and applied != before.applied
    if not (ends and after.status != before.status) and not begins_rollback and not decided and not applied_anew:
        return decision
    if applied is not None:
        after = msgspec.structs.replace(after, applied=applied)
    ended = after.status in _ENDS and after.status != before.status
    found = evidence(after, seen, now) if seen is not None and ended else None
    return replace(decision, status=after, before=(*decision.before, KeepHistory(after, found)))


def evidence(status: ChangeWorkloadStatus, seen: Snapshot, now: float) -> Evidence | None:
    """What another policy would have seen of a release that ends at `now` with this status. None: its pods are not
    known."""
    groups, policy = seen.groups, seen.release.spec.policy
    if groups is None:
        return None
    overdue = {each.pod.metadata.uid for each in groups.pods_in(Group.OVERDUE)}
    failed = failed_uids(status) | (overdue if status.status != WorkloadState.SUCCESS else frozenset())
    places = sorted(FailedPlace(each.place, each.seconds) for each in failures(failed, groups, (), now))
    giver = find_condition(status.conditions, ConditionType.VERIFIED)
    fails = giver is not None and giver.status == "False"
    return Evidence(
        replicas=seen.workload.replicas,
        pods=len(groups),
        failed_by=giver.reason if giver is not None and fails else "",
        failures=tuple(places[:MAX_FAILURES]),
        rules=policy if len(msgspec.json.encode(policy)) <= MAX_RULES else None,
    )


def record(
    release: Release,
    status: ChangeWorkloadStatus,
    batches: Iterable[Batch],
    known: Sequence[Action] = (),
    evidence: Evidence | None = None,
) -> Record:
    """The record of the release in the history, without what `logged` adds. `status`: its status that is about to be
    stored. `batches`: the batches of the release. `known`: the actions that the history has already. `evidence`: of a
    release that ends now."""
    ended, policy = msgspec.structs.replace(release, status=status), release.spec.policy
    observed = find_condition(status.conditions, ConditionType.STEPS_OBSERVED)
    return Record(
        released=release.spec.release_time or rfc3339(release.spec.create_time_unix),
        released_by=release.spec.released_by,
        state=status.status,
        since=rfc3339(status.entry_time_unix),
        reason=_reason(status),
        message=clip(why(ended, current=True), _MAX_MESSAGE),
        rolled_back=rolled_back(ended),
        checks=check_outcomes(batches),
        policy=f"{policy.namespace}/{policy.name}" if policy.name else "",
        mode=policy.mode.value if policy.name else "",
        would=would(policy, status).value,
        actions=_actions(release, status, known),
        steps=status.rollout.passed_steps,
        observed=clip(observed.message, _MAX_MESSAGE) if observed is not None else "",
        evidence=evidence,
    )


def logged(found: Record, known: Record | None, way: Way, number: int, *, again: bool) -> Record:
    """The record, with its number, its way, and the earlier releases of its version. `known`: the stored record of the
    version. `again`: the stored record is about an earlier release, so it is added to the earlier releases. `way`,
    `number`: the values for a release that is not stored yet."""
    if known is not None and not again:
        return msgspec.structs.replace(
            found,
            number=known.number or number,
            way=known.way or way,
            evidence=found.evidence or known.evidence,
            earlier=known.earlier,
        )
    past: tuple[Record, ...] = ()
    if known is not None:
        kept = known.evidence and msgspec.structs.replace(known.evidence, rules=None)
        past = (msgspec.structs.replace(known, actions=(), evidence=kept, earlier=()),)
    earlier = ((*known.earlier, *past) if known is not None else ())[-MAX_EARLIER:]
    return msgspec.structs.replace(found, number=number, way=way, earlier=earlier)


def way(release: Release, status: ChangeWorkloadStatus, others: Iterable[Release], *, again: bool) -> Way:
    """How the version came to be released. `others`: the other ChangeWorkloads of the workload. `again`: the history
    has an earlier release of the version."""
    began = release.spec.create_time_unix
    if any(each.verb == BYPASS and unix(each.time) >= began for each in status.actions):
        return Way.REPAIR
    generation = release.spec.workload_generation
    before = [each for each in others if each.spec.workload_generation < generation]
    last = max(before, key=lambda each: each.spec.workload_generation, default=None)
    if last is not None and rolled_back(last) and last.status.rollback_to == version_of(release):
        return Way.ROLLBACK
    return Way.AGAIN if again else Way.RELEASE


def superseded(present: Release, others: Iterable[Release]) -> list[Release]:
    """The releases that had not ended when the present one began."""
    return [
        each
        for each in others
        if state(each) not in _ENDS and each.spec.workload_generation < present.spec.workload_generation
    ]


def _actions(release: Release, status: ChangeWorkloadStatus, known: Sequence[Action]) -> tuple[Action, ...]:
    """The actions in the history and in the status. The history also has actions of earlier releases.

    An action is written to the history first. If the status is not written after that, the action is decided again,
    with another time. Then the first action is left out.
    """
    own = [bounded(each) for each in status.actions]
    stored = [bounded(each) for each in release.status.actions]
    decided_now = {(each.verb, each.by, each.reason) for each in own if each not in stored}
    began = release.spec.create_time_unix
    earlier = [
        each
        for each in known
        if each not in own and not (unix(each.time) >= began and (each.verb, each.by, each.reason) in decided_now)
    ]
    return (*earlier, *own)[-MAX_ACTIONS:]


def bounded(action: Action) -> Action:
    """The action as the history has it."""
    return msgspec.structs.replace(action, outcome=clip(action.outcome, _MAX_OUTCOME))


def check_outcomes(batches: Iterable[Batch]) -> tuple[CheckOutcome, ...]:
    """The worst state of each check and phase in all batches."""
    worst = worst_states(each for batch in batches for each in batch.checks)
    return tuple(sorted(CheckOutcome(name, phase, state) for (name, phase), state in worst.items()))


def _reason(status: ChangeWorkloadStatus) -> str:
    rolled_back = find_condition(status.conditions, ConditionType.ROLLED_BACK)
    if rolled_back is not None and status.status in (WorkloadState.ROLLBACK, WorkloadState.FAILED):
        return rolled_back.reason
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified.reason if verified is not None else ""


def in_use(workload: Workload, releases: Iterable[Release]) -> set[str]:
    """Versions, fingerprints and uids of the templates that serve now or that a rollback can go back to. `releases`:
    the current release, and the release that ends now."""
    found = {workload.version, workload.fingerprint}
    for release in releases:
        for source in (release.status.previous, release.status.rollback_target):
            found |= {source.version, source.fingerprint, source.uid}
    return found - {""}
