"""What a DefensePolicy would have decided about releases of the history. Pure functions.

They assume that pods and people had done the same, that a check with the same definition had answered the same, and
that the settings `blocking` and `rollback` were on. What does not follow from that is unknown: a wrong answer is worse
than none. The settings, the steps and the step that stops a release come from the functions with which the reconciler
decides.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec
from msgspec.structs import replace

from altershield.api.change_workload import WorkloadState
from altershield.api.check_results import CheckState
from altershield.api.condition_types import Giver
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy, Mode, OnFailure, Rules
from altershield.api.rollout import Rollout
from altershield.api.schema import doc
from altershield.api.workload_requests import MAX_ACTIONS, Result, Verb
from altershield.images import images_of, named
from altershield.releases.history import Entry, Evidence, Record
from altershield.releases.steps import approvals, least_seconds, plan
from altershield.rollout.observed import Failure, held_steps, stopping_step
from altershield.rollout.steps import of_kind, step_pods, steps_of
from altershield.views.document import Part
from altershield.workloads import BY_KIND, Adapter
from altershield.workloads.workload import Workload
from kube_base.times import unix
from reconciler.policies.applied import start_timeout
from reconciler.releases.terms.rules import settings_of
from reconciler.releases.terms.snapshot import RollbackReason

MAX_RELEASES = 10

_LONGER_PASSES = ("start_timeout_seconds", "max_start_seconds", "unschedulable_seconds", "settle_restarts")
"""Rules by which more pods pass if their number is larger."""
_SHORTER_PASSES = ("observe_seconds", "settle_seconds")
"""Rules by which more pods pass if their number is smaller."""


_FAILED = {
    Giver.PERSON: "failed, if the person had failed it",
    Giver.SERVER: "failed by the AlterShield server",
    Giver.CHECK: "failed by the same check",
    Giver.HEALTH: "failed, because its pods did not stay up",
}


class Would(StrEnum):
    """How the release would have ended."""

    PASS = "Pass"  # noqa: S105  (an end, not a password)
    SUSPEND = "Suspend"
    PAUSE = "Pause"
    """Suspended, and its rollout paused."""
    ROLLBACK = "Rollback"
    ROLLBACK_OR_SUSPEND = "RollbackOrSuspend"
    """Rolled back, or suspended if no version to go back to served."""
    NOTHING = "Nothing"
    """It would have failed, and the policy only observes or warns."""
    UNKNOWN = "Unknown"


class Replayed(Part, frozen=True):
    """A release of the history, and what the policy would have decided about it."""

    number: Annotated[int, doc("The number of the release; 0: it was kept before releases had numbers.")]
    version: Annotated[str, doc("Its version.")]
    images: Annotated[str, doc("Its images, in short; may be empty.")]
    released: Annotated[str, doc("When it was released; may be empty.")]
    ended: Annotated[str, doc("The state in which it ended, or `RolledBack`.")]
    would: Annotated[
        str,
        doc(
            "How it would have ended: `Pass`, `Suspend`, `Pause`, `Rollback`, `RollbackOrSuspend`, `Nothing` (the mode "
            "only observes or warns), or `Unknown`."
        ),
    ]
    why: Annotated[str, doc("What this follows from, or why it is unknown.")]
    step: Annotated[int, doc("The step in which it would have stopped; 0: none, or unknown.")]
    steps: Annotated[int, doc("How many steps it would have had; 0: none, or unknown.")]
    pods: Annotated[int, doc("How many pods have the version in this step.")]
    had: Annotated[int, doc("How many pods had the version when it ended; 0: unknown.")]
    replicas: Annotated[int, doc("The replicas of the workload then; 0: unknown.")]
    took_seconds: Annotated[int | None, doc("The seconds until its Success; null: it had none, or unknown.")]
    least_seconds: Annotated[
        int, doc("The least seconds that its steps would have taken, unless a person promotes it.")
    ]
    approvals: Annotated[int, doc("How many steps a person would have had to promote.")]


class Subject(NamedTuple):
    """The workload, and the policy as its releases would have had it."""

    adapter: Adapter
    policy: AppliedPolicy

    @property
    def rollout(self) -> Rollout | None:
        """The steps that a release would have taken; None: none."""
        if self.policy.rollout is None or self.policy.mode is not Mode.ENFORCE:
            return None
        return of_kind(self.policy.rollout, evicts=self.adapter.evicts)


def replayed(entries: Sequence[Entry], workload: Workload, policy: AppliedPolicy) -> tuple[Replayed, ...]:
    """The last releases of the workload, the newest first."""
    seconds = start_timeout(workload.start_timeout)
    if seconds is not None:
        policy = replace(policy, start_timeout_seconds=seconds)
    subject = Subject(BY_KIND[workload.group_kind], policy)
    found = [(entry, record) for entry in entries for record in entry.releases]
    found.sort(key=lambda each: (each[1].number, each[1].released, each[0].revision), reverse=True)
    return tuple(_replayed(entry, record, subject) for entry, record in found[:MAX_RELEASES])


def _replayed(entry: Entry, record: Record, subject: Subject) -> Replayed:
    evidence = record.evidence or Evidence()
    rolled_back = record.rolled_back and record.state != WorkloadState.ROLLBACK
    made = Replayed(
        number=record.number,
        version=entry.version,
        images=named(images_of(entry.template)),
        released=record.released,
        ended="RolledBack" if rolled_back else record.state,
        would=Would.UNKNOWN.value,
        why="",
        step=0,
        steps=0,
        pods=0,
        had=evidence.pods,
        replicas=evidence.replicas,
        took_seconds=_took(record),
        least_seconds=0,
        approvals=0,
    )
    if record.evidence is None:
        return replace(made, why="the history has no details of its end")
    rollout = subject.rollout
    if rollout is not None and evidence.replicas:
        views = plan(rollout, evidence.replicas)
        least = least_seconds(rollout, evidence.replicas)
        made = replace(made, steps=len(views), least_seconds=least, approvals=approvals(views))
    cause = _cause(record, evidence)
    unknown = cause.unknown or "; ".join(_unknown(cause.giver, record, evidence.rules, subject.policy))
    if unknown:
        return replace(made, why=unknown)
    if cause.giver is None:
        return replace(made, would=Would.PASS.value, why="all its pods passed")
    return _failed(made, cause.giver, record, evidence, subject)


def _took(record: Record) -> int | None:
    begun, ended = unix(record.released), unix(record.since)
    return int(ended - begun) if record.state == WorkloadState.SUCCESS and 0 < begun <= ended else None


class _Cause(NamedTuple):
    """Who failed a release. No giver: it passed."""

    giver: Giver | None
    unknown: str = ""
    """Why the history does not tell."""


def _cause(record: Record, evidence: Evidence) -> _Cause:
    began = unix(record.released)
    for each in record.actions:
        if each.verb in (Verb.APPROVE, Verb.RETRY) and each.result == Result.DONE and unix(each.time) >= began:
            return _Cause(None, f"a person asked for {each.verb} in this release")
    if record.state == WorkloadState.SUCCESS:
        if not evidence.pods or len(record.actions) >= MAX_ACTIONS:
            return _Cause(None, "the history does not say whether people decided about it")
        failed = sorted({each.name for each in record.checks if each.state == CheckState.FAILED})
        return _Cause(None, f"the check {', '.join(failed)} failed, and a person decided otherwise" if failed else "")
    found = record.reason
    if found == RollbackReason.POD_NOT_UP:
        found = Giver.HEALTH
    elif found == RollbackReason.VERIFICATION_FAILED:
        found = evidence.failed_by
    if found in tuple(Giver) and (record.rolled_back or record.state == WorkloadState.SUSPEND):
        return _Cause(Giver(found))
    if found == RollbackReason.REQUESTED:
        return _Cause(None, "a person went back from it")
    return _Cause(None, f"its end ({record.state} {found}".rstrip() + ") says nothing about its verification")


def _unknown(giver: Giver | None, record: Record, old: AppliedPolicy | None, new: AppliedPolicy) -> Iterator[str]:
    """Why the history does not tell whether the policy would have come to the same verdict."""
    if old is None:
        yield "the history does not have the policy that applied"
        return
    if giver is Giver.HEALTH:
        yield from _stricter(new, old, was=old)
        yield from _new_checks(old, new)  # they may have failed first, with other consequences
        return
    yield from _stricter(old, new, was=old)
    if giver is None:
        yield from _new_checks(old, new)
    elif giver is not Giver.PERSON:
        yield from _dropped(record, old, new)


def _stricter(old: Rules, new: Rules, *, was: Rules) -> Iterator[str]:
    """Why pods that passed by the rules `old` may not pass by the rules `new`. `was`: the rules that applied."""
    for name in (*_LONGER_PASSES, *_SHORTER_PASSES):
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        sign = 1 if name in _LONGER_PASSES else -1
        if before is None or after is None or sign * (after - before) < 0:
            value = getattr(was, name)
            yield f"{_camel(name)} was {'not set' if value is None else value}"
    if old.rollback_share != new.rollback_share:
        yield f"rollbackShare was {'not set' if was.rollback_share is None else was.rollback_share}"


def _new_checks(old: Rules, new: Rules) -> Iterator[str]:
    """The checks that nobody asked then."""
    for each in new.checks:
        if each not in old.checks:
            yield f"the check {each.name} was not asked"
    if not new.checks and old.checks and not any(each.server is not None for each in old.checks):
        yield "the check of the AlterShield server, if one is configured, was not asked"


def _dropped(record: Record, old: Rules, new: Rules) -> Iterator[str]:
    """Whether none of the checks that failed is a check of the policy."""
    if not old.checks and not new.checks:
        return  # the check of the AlterShield server, which is asked if a policy has no checks
    names = {each.name for each in record.checks if each.state == CheckState.FAILED}
    if not any(each.name in names and each in new.checks for each in old.checks):
        yield f"the policy does not have the check {', '.join(sorted(names)) or 'that failed it'} as it was"


def _failed(made: Replayed, giver: Giver, record: Record, evidence: Evidence, subject: Subject) -> Replayed:
    policy, rollout = subject.policy, subject.rollout
    made = replace(made, would=_reaction(giver, record, evidence, subject).value, why=f"it would have {_FAILED[giver]}")
    if rollout is None or not evidence.replicas:
        return made
    doubts = list(_new_checks(evidence.rules, policy)) if evidence.rules is not None else []
    if giver is Giver.HEALTH and evidence.rules is not None:
        doubts += _stricter(evidence.rules, policy, was=evidence.rules)
    if any(each.node_selector for each in steps_of(rollout)):
        doubts.append("its steps select nodes")
    if not evidence.failures:
        doubts.append("the history does not say which pods failed")
    if doubts:
        return replace(made, why=f"{made.why}; in which step is unknown: {'; '.join(doubts)}")
    failures = (Failure(each.place, each.seconds) for each in evidence.failures)
    step = stopping_step(list(held_steps(rollout, evidence.replicas)), failures)
    last = len(steps_of(rollout))
    number = step.number if step is not None else last
    return replace(made, step=number, pods=step_pods(rollout, number, evidence.replicas))


def _reaction(giver: Giver, record: Record, evidence: Evidence, subject: Subject) -> Would:
    """What follows from the failure, by the settings that the policy gives its releases."""
    settings = settings_of(Settings(), subject.policy)
    if not settings.blocking:
        return Would.NOTHING
    health = giver is Giver.HEALTH
    if not settings.no_start_rollback if health else settings.on_failure is OnFailure.ROLLBACK:
        old = evidence.rules
        same = old is not None and old.on_nothing_serves == subject.policy.on_nothing_serves
        return Would.ROLLBACK if record.rolled_back and (same or not health) else Would.ROLLBACK_OR_SUSPEND
    pauses = settings.on_failure is OnFailure.PAUSE and not health and subject.rollout is None
    return Would.PAUSE if pauses else Would.SUSPEND


def _camel(name: str) -> str:
    return msgspec.structs.fields(Rules)[Rules.__struct_fields__.index(name)].encode_name
