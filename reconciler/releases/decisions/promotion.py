"""Decides about the requests to promote a release in steps, and to hold it. Pure functions."""

from dataclasses import replace

import msgspec

from altershield.api.released_by import MAX_USER
from altershield.api.rollout import ENDED, Phase
from altershield.api.workload_requests import Request, Result, Verb
from altershield.releases.release import version_of
from altershield.releases.steps import step_text
from reconciler.releases.decisions.answers import UNCHANGED, answered
from reconciler.releases.decisions.steps import announced, view_of
from reconciler.releases.findings import verification
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.draft import begin_with
from reconciler.releases.terms.effects import Decision
from reconciler.releases.terms.snapshot import Snapshot
from reconciler.rollout.progress import promoted


def promote(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Take the next step without the rest of the soak and without waiting for approval, and end a person's hold."""
    draft, known = begin_with(snapshot, now), snapshot.release.status.rollout
    view = view_of(snapshot, verification.next_state(snapshot), now)
    if view is None or not known.phase or known.phase in ENDED:
        return answered(draft, request, Result.UNCHANGED, f"{_own(snapshot)} has no step to take; {UNCHANGED}")
    released_by = snapshot.release.spec.released_by
    own = request.by[:MAX_USER] in ("", released_by)
    if known.phase == Phase.WAITING_FOR_APPROVAL and view.rollout.other_approver and own:
        outcome = f"{_own(snapshot)} is not promoted: another user than {released_by} has to do so; {UNCHANGED}"
        return answered(draft, request, Result.REFUSED, outcome)
    if known.phase in (Phase.SOAKING, Phase.WAITING_FOR_APPROVAL) and (due := _observed_at(snapshot)) is not None:
        return Decision(requeue_after=max(0.0, due - now))
    full = request.verb == Verb.PROMOTE_FULL
    by = request.by or "a person"
    found = promoted(known, view, by, now, full=full)
    if isinstance(found, str):
        return answered(draft, request, Result.REFUSED, f"{_own(snapshot)} is not promoted: {found}; {UNCHANGED}")
    stays = known.held_by and (found.status.step, found.status.phase) == (known.step, known.phase)
    what = "is not held any more in" if stays else "goes on after"
    outcome = f"{_own(snapshot)} {what} {step_text(known)}"
    outcome += "; later steps have no soak and wait for no approval" if full else ""
    decision = answered(draft.replace(rollout=found.status), request, Result.DONE, outcome)
    return replace(decision, after=(*decision.after, *(announced(each) for each in found.events)))


def hold(snapshot: Snapshot, request: Request, now: float) -> Decision:
    """Keep the release at its step until a person promotes it."""
    draft, known = begin_with(snapshot, now), snapshot.release.status.rollout
    if not known.phase or known.phase in (*ENDED, Phase.STOPPED, Phase.FINISHING):
        return answered(draft, request, Result.UNCHANGED, f"{_own(snapshot)} has no step to hold; {UNCHANGED}")
    if known.held_by:
        return answered(draft, request, Result.UNCHANGED, f"{known.held_by} holds {_own(snapshot)} already")
    draft = draft.replace(rollout=msgspec.structs.replace(known, held_by=request.by or "a person"))
    outcome = f"{_own(snapshot)} stays at {step_text(known)} until a person promotes it"
    return answered(draft, request, Result.DONE, outcome)


def _observed_at(snapshot: Snapshot) -> float | None:
    """When it is known whether the pods are still up, Unix seconds; None if it is known. A new leader observes the pods
    that passed once more: the request waits for that, and is not refused."""
    groups = snapshot.groups
    if groups is None or not groups.count(Group.OBSERVING):
        return None
    known = groups.count(Group.OBSERVING) + groups.count(Group.PASSED) == len(groups)
    return groups.next_due() if known else None


def _own(snapshot: Snapshot) -> str:
    return f"version {version_of(snapshot.release)}"
