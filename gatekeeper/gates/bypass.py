"""What lets a release pass that a gate would deny."""

from altershield.api import labels
from gatekeeper.review import Change
from gatekeeper.view import View

BYPASSES = ("reconciler", "ignored-suspend", "blocking-off")


def bypass(change: Change, view: View) -> str:
    """Why this change passes all the same, in a word; empty if it does not."""
    if change.user == view.reconciler:
        return "reconciler"
    if change.new.label(labels.IGNORED_SUSPEND) == "true":
        return "ignored-suspend"
    return "" if view.blocking else "blocking-off"
