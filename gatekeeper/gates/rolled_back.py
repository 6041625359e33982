"""A version that was rolled back is not released again by accident, as a GitOps tool would do."""

from altershield.api import labels
from altershield.api.kinds import ConditionType
from altershield.api.meta import find_condition
from gatekeeper.gates.bypass import bypass
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import clean
from gatekeeper.review import Change, Denial
from gatekeeper.view import View

_MAX_WHY = 300  # bytes


def deny_rolled_back(change: Change, view: View) -> Opinion:
    """Deny a template whose version has a record of its rollback. The record goes when a newer version
    succeeded."""
    if change.old is None or not view.has_rolled_back(change.namespace):
        return NOTHING
    version = change.release()
    if not version:
        return NOTHING
    record = view.record(change.namespace, change.name, change.old.metadata.uid, version)
    if record is None or not record.rolled_back:
        return NOTHING
    passes = bypass(change, view) or ("" if view.blocking else "blocking-off")
    if passes:
        return Opinion(reason=passes, audit={"version": version, "bypass": passes})
    condition = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    when = f" at {condition.last_transition_time}" if condition and condition.last_transition_time else ""
    why = f": {clean(condition.message, _MAX_WHY)}" if condition and condition.message else ""
    message = (
        f"{change.kind} {change.name}: version {version} was rolled back{when}{why}; "
        f'change the template, or set the label {labels.IGNORED_SUSPEND}: "true" to release it again'
    )
    return Opinion(
        audit={"version": version, "reason": message},
        # kubectl prints the reason before the message: the API's own word there, not the whole text twice
        denial=Denial(message=message, reason="Forbidden"),
        reason="rolled-back",
    )
