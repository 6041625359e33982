"""AlterShield's own account may write only the pod template of a rollback. RBAC lets it patch any workload."""

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.pages import DENIED
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response

_TRY_AGAIN = "TooManyRequests"


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.NO_ROLLBACK),))
def deny_other_templates(change: Change, listers: Listers) -> Response:
    """Deny a template that the reconciler writes, unless the stored ChangeWorkload of the present version says that
    this template replaces it. The reconciler stores this before it writes the template. The cache may be older than
    that. So if the cached ChangeWorkload names no rollback, the answer asks the reconciler to try again.
    """
    if change.user != listers.reconciler or change.old_object is None:
        return NOTHING
    version = released_version(change)
    if not version:
        return NOTHING
    present = change.old_object.label(labels.VERSION) or ""
    release = listers.release(change.namespace, workload_ref(change), present)
    target = release.status.rollback_target.fingerprint if release is not None else ""
    begun = release is not None and releases.state(release) == WorkloadState.ROLLBACK and target != ""
    if begun and target == version:
        return NOTHING
    named = f"names another template: {target}" if begun else "does not exist, or is not stored yet"
    text = (
        f"AlterShield: AlterShield's account may release the template {version} of {change.kind} {change.name} only in "
        f"a rollback of version {present or 'unknown'}, and that rollback {named}; see {DENIED}"
    )
    code, reason = (403, "Forbidden") if begun else (429, _TRY_AGAIN)
    return Response(
        audit={"version": version, "reason": text},
        denial=Denial(message=text, reason=reason, code=code),
        reason=Reason.NO_ROLLBACK,
    )
