"""Decides when the rollout of a release that failed verification is paused, and when the pause ends. Pure functions.

With `pauseSeconds`, the pause ends by itself. The time of the end is stored before the rollout is paused. So it does
not change if the reconciler is killed between these writes, or is late.

The end of a pause changes no verdict: the version stays failed, and releases stay suspended. By default, the last
version that passed is released again while the rollout is still paused. The pause is taken back after that. If the
rollback is not possible, the pause stays. So the failed version gets no further pods, unless the policy has
`onPauseEnd: continue`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from altershield.api.change_workload import PauseEnd, WorkloadState
from altershield.api.meta import plain_time
from altershield.api.policy import OnFailure, OnPauseEnd
from altershield.releases.release import version_of
from altershield.workloads.workload import Strategy
from kube_base.times import rfc3339
from reconciler.releases.findings import failure
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.draft import Draft
from reconciler.releases.terms.effects import After, Announce, Pause, Suspend, Unpause
from reconciler.releases.terms.snapshot import Snapshot

_CLOCK_SKEW = 60
"""Seconds by which the clocks of two leaders may differ."""


@dataclass(frozen=True, slots=True)
class Step:
    """The part of a decision that is about the pause."""

    draft: Draft
    after: tuple[After, ...] = ()
    wake: float | None = None
    """When the pause ends, Unix seconds; None if it does not end by itself."""


def is_over(snapshot: Snapshot, now: float) -> bool:
    """Whether the time of the pause is over, and its end has had no consequences yet.

    While pods that replace the failed pods are being verified, the end has no consequences: the new pods decide.
    """
    known = snapshot.release.status.pause
    return (
        0 < known.end_time_unix <= now
        and not known.ended
        and failure.has_failed(snapshot)
        and not failure.is_resumed(snapshot)
    )


def wants_rollback(snapshot: Snapshot, now: float) -> bool:
    """Whether the release is to be rolled back because the time of the pause is over."""
    return is_over(snapshot, now) and snapshot.release.spec.policy.on_pause_end is not OnPauseEnd.CONTINUE


def end_text(snapshot: Snapshot) -> str:
    """The part of a sentence which says that the time of the pause is over."""
    return f"the pause has ended after {snapshot.release.spec.policy.pause_seconds} s"


def ended_with_rollback(snapshot: Snapshot) -> Announce:
    """The Event of a pause that ends with a rollback."""
    message = f"{end_text(snapshot)}: version {version_of(snapshot.release)} is rolled back, because nobody decided"
    return Announce("RolloutPauseEnded", message)


def step(
    snapshot: Snapshot, draft: Draft, next_state: WorkloadState, after: Sequence[After], why: str, no_rollback: str
) -> Step:
    """Pause the rollout of a release that is suspended because it failed verification, or end the pause.

    `after`: the effects that are already decided. `no_rollback`: why the release is not rolled back at the end of the
    pause; empty if the pause does not end now.

    The last person decides: a rollout that a person paused stays paused. A rollout that a person continued goes on,
    although the annotation of AlterShield still says that it is paused.
    """
    workload, release, own = snapshot.workload, snapshot.release, version_of(snapshot.release)
    suspended = next_state is WorkloadState.SUSPEND and (
        bool(workload.suspended) or any(isinstance(each, Suspend) for each in after)
    )
    if not suspended:
        return _without_suspension(snapshot, draft, next_state)
    continues = release.spec.policy.on_pause_end is OnPauseEnd.CONTINUE
    effects: list[After] = []
    if is_over(snapshot, draft.now):
        draft = draft.replace(pause=msgspec.structs.replace(draft.status.pause, ended=True))
        consequence = (
            f"the rollout of version {own} continues although the version failed, and further releases are denied"
            if continues
            else f"version {own} is not rolled back, and its rollout stays paused until a person decides: {no_rollback}"
        )
        effects.append(Announce("RolloutPauseEnded", f"{end_text(snapshot)}: {consequence}"))
    if continues and draft.status.pause.ended:
        return Step(draft, ((Unpause(), *effects) if workload.held else tuple(effects)))
    wanted = (
        not workload.held
        and workload.steps is None  # no further pod gets the version: its step is held
        and snapshot.settings.on_failure is OnFailure.PAUSE
        and failure.has_failed(snapshot)
        and not workload.in_force.paused
        and workload.in_force.strategy is not Strategy.ON_DELETE
    )
    if wanted or workload.held:
        draft = _with_end(snapshot, draft)
    if wanted:
        effects += [Pause(own, why, draft.status.pause.end_time_unix), _announced(snapshot, draft.status.pause, why)]
    end = draft.status.pause
    waits = end.end_time_unix > draft.now and not end.ended
    return Step(draft, tuple(effects), end.end_time_unix if waits else None)


def _without_suspension(snapshot: Snapshot, draft: Draft, next_state: WorkloadState) -> Step:
    """End the pause of a release that is not suspended."""
    if snapshot.workload.held and _is_verified_while_paused(snapshot, next_state):
        return Step(draft)
    # a rollout that continued at the end of its pause is not paused again, until a person decides or it succeeds
    continued = draft.status.pause.ended and snapshot.release.spec.policy.on_pause_end is OnPauseEnd.CONTINUE
    if not continued or next_state is WorkloadState.SUCCESS or failure.is_resumed(snapshot):
        draft = draft.replace(pause=PauseEnd())
    if not snapshot.workload.held:
        return Step(draft)
    own = version_of(snapshot.release)
    message = f"the rollout continues: AlterShield had paused it, and version {own} is not suspended"
    return Step(draft, (Unpause(), Announce("RolloutContinued", message, warning=False)))


def _with_end(snapshot: Snapshot, draft: Draft) -> Draft:
    """Sets the end of the pause if the policy has `pauseSeconds`. A stored end that is too far ahead came from a wrong
    clock, and is replaced."""
    seconds, known = snapshot.release.spec.policy.pause_seconds, draft.status.pause
    if snapshot.settings.on_failure is not OnFailure.PAUSE or seconds is None or not failure.has_failed(snapshot):
        return draft
    end = int(draft.now) + seconds
    if known.end_time_unix and (known.ended or known.end_time_unix <= end + _CLOCK_SKEW):
        return draft
    return draft.replace(pause=PauseEnd(plain_time(end), end))


def _announced(snapshot: Snapshot, end: PauseEnd, why: str) -> Announce:
    until = ""
    if end.end_time_unix and not end.ended:
        continues = snapshot.release.spec.policy.on_pause_end is OnPauseEnd.CONTINUE
        then = "it continues" if continues else "the last version that passed is released again"
        until = f" until {rfc3339(end.end_time_unix)}, when {then}"
    message = (
        f"the rollout of version {version_of(snapshot.release)} is paused{until}: {why}; it continues after a person "
        "approves or resumes the release, or when another version is released"
    )
    return Announce("RolloutPaused", message)


def _is_verified_while_paused(snapshot: Snapshot, next_state: WorkloadState) -> bool:
    """Whether the version for which the rollout was paused still has pods that have not passed, after its failed pods
    were deleted or are verified again. Releases are suspended until then."""
    workload, groups = snapshot.workload, snapshot.groups
    return (
        bool(workload.suspended)
        and next_state is not WorkloadState.SUCCESS
        and workload.held_version == version_of(snapshot.release)
        and groups is not None
        and groups.count(Group.PASSED) < len(groups)
    )
