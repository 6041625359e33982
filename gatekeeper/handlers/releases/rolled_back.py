"""A version that was rolled back is not released again by accident, as a GitOps tool would do."""

from altershield import releases
from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.bypass import awaited, bypass
from gatekeeper.handlers.releases.reasons import BLOCKING_OFF, BYPASSES, Reason
from gatekeeper.handlers.releases.workload import Change, Workload, released_version, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import PAGE, at, clean

_MAX_WHY = 300  # bytes


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.ROLLED_BACK), *BYPASSES, BLOCKING_OFF))
def deny_rolled_back(change: Change, listers: Listers) -> Response:
    """Deny a template that has a record of its rollback. The record is deleted when a newer version succeeds. A
    workload that is created again has the records of one that was deleted without them."""
    all_releases = listers.rolled_back(change.namespace, workload_ref(change))
    if not all_releases:
        return NOTHING
    version = released_version(change)
    if not version:
        return NOTHING
    release = next((each for each in all_releases if releases.is_of_template(each, version)), None)
    if release is None:
        return NOTHING
    passes = bypass(change, listers) or (None if listers.blocking else Reason.BLOCKING_OFF)
    if passes is not None:
        return Response(reason=passes, audit={"version": version, "bypass": passes})
    reason = clean(releases.why(release, current=True), _MAX_WHY)
    why = f": {reason}" if reason else ""
    message = (
        f"AlterShield: {change.kind} {clean(change.name, _MAX_WHY)}: version {releases.version(release)} "
        f"was rolled back"
        f"{at('at', releases.since(release))}{why}; "
        f"change the template, or release it again with the label {labels.IGNORED_SUSPEND}=true; see {PAGE}"
    )
    return Response(
        warnings=awaited(change),
        audit={"version": version, "reason": message},
        # kubectl prints the reason before the message: the API's own word there, not the whole text twice
        denial=Denial(message=message, reason="Forbidden"),
        reason=Reason.ROLLED_BACK,
    )
