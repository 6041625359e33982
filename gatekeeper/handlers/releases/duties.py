"""Separation of duties: the user who released what failed does not let the next release pass."""

from altershield.api.pages import DUTIES
from altershield.api.workload_requests import Verb
from altershield.releases import duties
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.back import present_release
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response


@handler(reads=Workload, outcomes=(Outcome(Decision.DENIED, Reason.OWN_RELEASE),))
def deny_own_repair(change: Change, listers: Listers) -> Response:
    """Deny the label `ignored-suspend` to a user who may not decide about the present version, or about one that was
    rolled back: also before it fails, because nobody knows later who added the label. A label that another user added
    stays valid for every user."""
    old = change.old_object
    if not change.object.repairs or (old is not None and old.repairs) or change.user == listers.reconciler:
        return NOTHING
    refusal = refused(change, listers)
    if not refusal:
        return NOTHING
    message = f"AlterShield: {change.kind} {change.name}: the label ignored-suspend cannot be added: {refusal}"
    message = f"{message}; see {DUTIES}"
    return Response(
        audit={"reason": message}, denial=Denial(message=message, reason="Forbidden"), reason=Reason.OWN_RELEASE
    )


def refused(change: Change, listers: Listers) -> str:
    """Why the user may not let a release pass; empty: the user may."""
    present = present_release(change, listers)
    failed = listers.rolled_back(change.namespace, workload_ref(change))
    found = duties.not_theirs(change.user, duties.decided(Verb.REPAIR, present, failed))
    return duties.denial(found, change.namespace) if found is not None else ""
