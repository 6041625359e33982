"""What lets a release pass that a handler would deny."""

from altershield.api import labels
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change
from gatekeeper.listers import Listers
from gatekeeper.texts import warning


def bypass(change: Change, listers: Listers) -> Reason | None:
    """Why this change passes although it would be denied; None if it does not pass."""
    if change.user == listers.reconciler:
        return Reason.RECONCILER
    return Reason.IGNORED_SUSPEND if _repairs(change) and _processed(change) else None


def awaited(change: Change) -> tuple[str, ...]:
    """The warning for a repair that is sent before the release of a moment ago was recorded."""
    if not _repairs(change) or _processed(change):
        return ()
    version = change.old_object.label(labels.VERSION) if change.old_object is not None else None
    text = (
        "AlterShield: the label ignored-suspend lets one release pass, and it already let version "
        f"{version or 'unknown'} pass, which is not recorded yet; try again in a few seconds"
    )
    return (warning(text),)


def _repairs(change: Change) -> bool:
    return change.object.label(labels.IGNORED_SUSPEND) == "true"


def _processed(change: Change) -> bool:
    """Whether the stored release has its record, or nothing is stored. The label that lets a repair pass is removed
    when the record is made. Until then the label has let the stored release pass, and may not let another one pass."""
    return change.old_object is None or change.old_object.label(labels.DEFENSE_STATUS) == labels.PROCESSED
