"""Exceptions from the denials: releases of the reconciler, and releases with the label `ignored-suspend`."""

from altershield.api import labels, released_by
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change
from gatekeeper.listers import Listers
from gatekeeper.texts import warning


def bypass(change: Change, listers: Listers) -> Reason | None:
    """Why this change passes although a handler would deny it. None: it does not pass."""
    if change.user == listers.reconciler:
        return Reason.RECONCILER
    return Reason.IGNORED_SUSPEND if change.object.repairs and _is_unused(change, listers) else None


def not_processed(change: Change, listers: Listers) -> tuple[str, ...]:
    """The warning for a repair that is sent before the reconciler processed the repair before it."""
    if not change.object.repairs or _is_unused(change, listers):
        return ()
    version = change.old_object.label(labels.VERSION) if change.old_object is not None else None
    text = (
        "AlterShield: the label ignored-suspend lets one release pass, and it already let version "
        f"{version} pass, which is not processed yet; release again in a few seconds"
    )
    return (warning(text),)


def is_processed(change: Change) -> bool:
    """Whether the stored version has its ChangeWorkload, or no version is stored. The reconciler removes the label
    `ignored-suspend` when it creates the ChangeWorkload. Until then, the label is for the stored version and must not
    admit another version. A workload without a version was released while no gatekeeper decided, or was restored from a
    backup. In this case, the label has not admitted a release yet."""
    old = change.old_object
    return old is None or not old.label(labels.VERSION) or old.label(labels.DEFENSE_STATUS) == labels.PROCESSED


def _is_unused(change: Change, listers: Listers) -> bool:
    """Whether the label `ignored-suspend` let no version pass yet. The reconciler needs no label for a rollback."""
    if is_processed(change) or change.old_object is None:
        return True
    version = change.old_object.label(labels.VERSION)
    by = released_by.decode(change.old_object.released_by, version or "")
    return by is not None and by.user == listers.reconciler
