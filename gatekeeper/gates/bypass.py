"""What lets a release pass that a gate would deny."""

from altershield.api import labels
from gatekeeper.gates.texts import warning
from gatekeeper.review import Change
from gatekeeper.view import View

RECONCILER = "reconciler"
BYPASSES = (RECONCILER, "ignored-suspend", "blocking-off")
"""The last one is for rolled-back versions only: what was suspended stays so when `blocking` is switched off."""


def bypass(change: Change, view: View) -> str:
    """Why this change passes all the same, in a word; empty if it does not."""
    if change.user == view.reconciler:
        return RECONCILER
    return "ignored-suspend" if _repairs(change) and _processed(change) else ""


def awaited(change: Change) -> tuple[str, ...]:
    """The warning for a repair that comes before the release of a moment ago was taken up."""
    if not _repairs(change) or _processed(change):
        return ()
    version = change.old.label(labels.VERSION) if change.old is not None else None
    text = (
        f"the label counts once: the release of a moment ago (version {version or 'unknown'}) has yet to be taken up; "
        "see what becomes of it, or try again in a few seconds"
    )
    return (warning(text),)


def _repairs(change: Change) -> bool:
    return change.new.label(labels.IGNORED_SUSPEND) == "true"


def _processed(change: Change) -> bool:
    """Whether the stored release has its record, or nothing is stored. The label that lets a repair pass is taken off
    when the record is made: until then it has let one pass already, and what is stored is that one."""
    return change.old is None or change.old.label(labels.DEFENSE_STATUS) == labels.PROCESSED
