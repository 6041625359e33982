"""No user puts the labels that AlterShield writes on workloads and pods into a pod template."""

from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import RESTORED, Reason
from gatekeeper.handlers.releases.workload import Change, Workload, released_version
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import warning


@handler(reads=Workload, outcomes=(RESTORED,))
def purge(change: Change, listers: Listers) -> Response:
    """Remove the labels from a template that is released: with them, its pods would count as up from the start. If the
    template does not change otherwise, restore the stored labels, because a change would restart pods."""
    sent = change.object.template_labels or {}
    stored = (change.old_object.template_labels if change.old_object is not None else None) or {}
    keys = [key for key in labels.NOT_IN_TEMPLATES if key in sent or key in stored]
    if not keys:
        return NOTHING
    version = released_version(change)
    wanted: dict[str, str | None] = {}
    warnings = []
    for key in keys:
        kept = None if version else stored.get(key)
        if sent.get(key) == kept:
            continue
        wanted[key] = kept
        outcome = "it was removed" if kept is None else f"its value is {kept!r} until the next release"
        warnings.append(warning(f"AlterShield: the label {key} does not belong in a pod template: {outcome}"))
    if not wanted:
        return NOTHING
    return Response(template_labels=wanted, warnings=tuple(warnings), reason=Reason.RESTORED)
