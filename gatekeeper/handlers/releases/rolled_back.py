"""The denial of a version that was rolled back. A GitOps tool would release it again and again."""

from altershield import releases
from altershield.api import labels
from altershield.api.pages import DENIED
from altershield.releases.texts import was_rolled_back
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.bypass import bypass, not_processed
from gatekeeper.handlers.releases.duties import refused
from gatekeeper.handlers.releases.reasons import BLOCKING_OFF, BYPASSES, Reason
from gatekeeper.handlers.releases.texts import repair_command, version_text
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import clean, time_text

_MAX_WHY = 300  # bytes


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.ROLLED_BACK), *BYPASSES, BLOCKING_OFF))
def deny_rolled_back(change: Change, listers: Listers) -> Response:
    """Deny a template whose ChangeWorkload says that it was rolled back.

    The reconciler deletes this ChangeWorkload when a newer version succeeds. The ChangeWorkloads of a workload that was
    deleted without them count for a new workload of the same kind and name.
    """
    rolled_back = listers.rolled_back(change.namespace, workload_ref(change))
    if not rolled_back:
        return NOTHING
    version = released_version(change)
    if not version:
        return NOTHING
    release = next((each for each in rolled_back if releases.is_of_template(each, version)), None)
    if release is None:
        return NOTHING
    passes = bypass(change, listers) or (None if listers.blocking else Reason.BLOCKING_OFF)
    if passes is not None:
        return Response(reason=passes, audit={"version": version, "bypass": passes})
    message = _message(change, release, refused(change, listers))
    return Response(
        warnings=not_processed(change, listers),
        audit={"version": version, "reason": message},
        # kubectl prints the reason before the message, so the reason does not repeat the message
        denial=Denial(message=message, reason="Forbidden"),
        reason=Reason.ROLLED_BACK,
    )


def _message(change: Change, release: Release, not_by_user: str) -> str:
    """The command is at the end, so that it can be pasted. It cannot label a workload that does not exist yet.
    `not_by_user`: why the user may not let it pass; empty: the user may."""
    version = version_text(releases.version_of(release), change.object, change.old_object)
    reason = clean(releases.why(release, current=True), _MAX_WHY)
    why = f": {reason}" if reason else ""
    if not_by_user:
        way_out = f"ask somebody else to let it pass: {not_by_user}"
    elif change.old_object is None:
        way_out = f'add the label {labels.IGNORED_SUSPEND}: "true" to the manifest and create it again'
    else:
        way_out = f"run this command, which lets one release pass, and release it again: {repair_command(change)}"
    return (
        f"AlterShield: {change.kind} {clean(change.name, _MAX_WHY)}: {was_rolled_back(release, version)}"
        f"{time_text('at', releases.since(release))}{why}; see {DENIED}; change the template, or "
        f"{way_out}"
    )
