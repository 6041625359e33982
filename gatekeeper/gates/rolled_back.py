"""A version that was rolled back is not released again by accident, as a GitOps tool would do."""

from altershield import releases
from altershield.api import labels
from gatekeeper.gates.bypass import awaited, bypass
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import at, clean
from gatekeeper.review import Change, Denial
from gatekeeper.view import View

_MAX_WHY = 300  # bytes


def deny_rolled_back(change: Change, view: View) -> Opinion:
    """Deny a template of which there is a record that it was rolled back. The record goes when a newer version
    succeeded. A workload that is made anew has the records of one that was deleted without them."""
    records = view.rolled_back(change.namespace, change.workload)
    if not records:
        return NOTHING
    version = change.release
    if not version:
        return NOTHING
    record = next((each for each in records if releases.is_of_template(each, version)), None)
    if record is None:
        return NOTHING
    passes = bypass(change, view) or ("" if view.blocking else "blocking-off")
    if passes:
        return Opinion(reason=passes, audit={"version": version, "bypass": passes})
    reason = clean(releases.why(record, current=True), _MAX_WHY)
    why = f": {reason}" if reason else ""
    message = (
        f"{change.kind} {change.name}: version {releases.version(record)} was rolled back"
        f"{at('at', releases.since(record))}{why}; "
        f'change the template, or set the label {labels.IGNORED_SUSPEND}: "true" to release it again'
    )
    return Opinion(
        warnings=awaited(change),
        audit={"version": version, "reason": message},
        # kubectl prints the reason before the message: the API's own word there, not the whole text twice
        denial=Denial(message=message, reason="Forbidden"),
        reason="rolled-back",
    )
