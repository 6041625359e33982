"""Decides which Events of a decision are stored in the status, and when a stored Event is true, so that it may be
written. Pure functions.

An Event is stored together with the status that it is about, or before the effect that it is about. So a crash loses
neither. An Event about an effect is written when the workload shows the effect.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from altershield.api.announcements import Announcement, added, announcement, is_late
from altershield.api.change_workload import WorkloadState
from altershield.releases import state
from altershield.releases.release import version_of
from altershield.workloads.workload import Workload
from reconciler.cluster.release import Release
from reconciler.releases.terms.draft import with_update_time
from reconciler.releases.terms.effects import Announce, Decision

_PAUSED, _CONTINUED, _RESUMED = "RolloutPaused", "RolloutContinued", "ReleaseResumed"
_OF_EFFECTS = (_PAUSED, _CONTINUED, _RESUMED)
"""Reasons of Events about an effect on the workload. A decision repeats them until the workload shows the effect."""


def announced_first(release: Release, decision: Decision, left: Sequence[Announcement], now: float) -> Decision:
    """The decision, or a decision that only stores the Event about the end of the suspension. That Event is stored
    first, because the label that shows the suspension is removed before the status of the decision is stored.

    `left`: the announcements in the stored status whose Events may be missing.
    """
    resumed = tuple(each for each in _asked(decision) if each.reason == _RESUMED)
    if all(_is_stored(release, each, left, now) for each in resumed):
        return decision
    return Decision(after=resumed, requeue_after=0.0)


def with_announcements(release: Release, decision: Decision, left: Sequence[Announcement], now: float) -> Decision:
    """The decision with its Events in the status. `left`: the announcements in the stored status whose Events may be
    missing. The other announcements are removed with the next write of the status."""
    asked = _asked(decision)
    stored = release.status.announcements
    repeated = [each for each in stored if any(_is_repeated(each, by, left, now) for by in asked)]
    new = [
        announcement(each.reason, each.message, now, normal=not each.warning)
        for each in asked
        if not _is_stored(release, each, left, now)
    ]
    if decision.status is None and not new:
        return decision
    kept = [each for each in stored if each in left or each in repeated]
    status = decision.status or with_update_time(release.status, now)
    status = msgspec.structs.replace(status, announcements=added(kept, new))
    return replace(decision, status=status)


def true_now(release: Release, workload: Workload, announcements: Iterable[Announcement]) -> list[Announcement]:
    """The announcements whose Events may be written now."""
    return [each for each in announcements if _is_true(each.reason, release, workload)]


def _is_true(reason: str, release: Release, workload: Workload) -> bool:
    """Whether the workload shows the effect that an Event of this reason is about."""
    if reason == _PAUSED:
        return workload.held and workload.held_version == version_of(release)
    if reason == _CONTINUED:
        return not workload.held
    if reason == _RESUMED:
        return state(release) is WorkloadState.SUCCESS and not workload.suspended
    return True


def _asked(decision: Decision) -> list[Announce]:
    return [each for each in decision.after if isinstance(each, Announce)]


def _is_stored(release: Release, event: Announce, left: Sequence[Announcement], now: float) -> bool:
    return any(_is_repeated(known, event, left, now) for known in release.status.announcements)


def _is_repeated(known: Announcement, event: Announce, left: Sequence[Announcement], now: float) -> bool:
    """Whether the decision announces again what the status has already, because an effect was not carried out."""
    if known.reason != event.reason or is_late(known, now):
        return False
    same = known.message == announcement(event.reason, event.message, 0.0).message
    return same or (event.reason in _OF_EFFECTS and known in left)
