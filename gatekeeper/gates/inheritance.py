"""A workload that is deleted and made anew does not lose its suspension with it."""

from collections.abc import Sequence

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import WorkloadState
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import at, owned, warning
from gatekeeper.records import Record
from gatekeeper.review import Change
from gatekeeper.view import View


def inherit(change: Change, view: View) -> Opinion:
    """Suspend what is created where a namesake, deleted without its records, was suspended, unless the setting
    `blocking` is off. What else is created with the label `suspend`, as from a copy of another workload, gets none."""
    if change.user == view.reconciler:
        return NOTHING
    record = _failed(view.orphaned(change.namespace, change.workload)) if change.name else None
    sent = change.new.label(labels.SUSPEND)
    if record is None or not view.blocking:
        return NOTHING if sent is None else Opinion({labels.SUSPEND: None}, warnings=(owned(labels.SUSPEND, None),))
    since = releases.since(record)
    if sent == str(since):
        return NOTHING
    text = (
        f"{change.kind} {change.name} was suspended when it was deleted, and is again{at('since', since)}: "
        f"version {releases.version(record)} failed verification"
    )
    return Opinion({labels.SUSPEND: str(since)}, warnings=(warning(text),), audit={"inherited": record.metadata.name})


def _failed(records: Sequence[Record]) -> Record | None:
    """The first one that was suspended."""
    suspended = [record for record in records if releases.state(record) == WorkloadState.SUSPEND]
    return min(suspended, key=releases.since, default=None)
