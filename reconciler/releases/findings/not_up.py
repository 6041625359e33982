"""The condition PodsNotUp, which says why pods of a release under way are not up yet. Pure functions."""

from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.releases.texts import not_up
from reconciler.releases.findings.ending import health_counts
from reconciler.releases.pods.words import cause
from reconciler.releases.terms.draft import UNDER_WAY, Draft
from reconciler.releases.terms.snapshot import Snapshot

_CHANGE_INTERVAL = 30
"""The least number of seconds between the last write of the status and a write only because the reason of this
condition changed. The first reason is written at once."""

_REMOVAL_INTERVAL = 60
"""The same if there is no reason any more, because other pods may have the same reason soon."""


def with_not_up(draft: Draft, snapshot: Snapshot, next_state: WorkloadState) -> Draft:
    """Sets or removes the condition."""
    groups = snapshot.groups
    first = groups.not_up.first if groups is not None and next_state in UNDER_WAY else None
    words = groups.words(first) if groups is not None and first is not None else None
    if groups is None or first is None or words is None:
        return draft.without(ConditionType.PODS_NOT_UP)
    total = max(groups.wanted, len(groups))
    message = not_up(len(groups.not_up.telling), total, first.pod.metadata.name, str(words))
    return draft.condition(ConditionType.PODS_NOT_UP, True, cause(words), message)


def write_due(before: ChangeWorkloadStatus, wanted: ChangeWorkloadStatus) -> float | None:
    """When the status is to be written because the condition changed, Unix seconds; None: it has the same reason. If
    the status is written earlier for another reason, it includes the condition."""
    old, new = _reason(before), _reason(wanted)
    if old == new:
        return None
    if not old:
        return 0.0
    return before.update_time_unix + (_CHANGE_INTERVAL if new else _REMOVAL_INTERVAL)


def ask_due(snapshot: Snapshot, next_state: WorkloadState) -> float | None:
    """When the Events of pods are to be read, because nothing else says why they are not up, Unix seconds; or None."""
    if snapshot.groups is None or next_state is WorkloadState.SUSPEND or not health_counts(snapshot):
        return None
    return snapshot.groups.not_up.next_ask()


def _reason(status: ChangeWorkloadStatus) -> str:
    known = find_condition(status.conditions, ConditionType.PODS_NOT_UP)
    return known.reason if known is not None and known.is_true else ""
