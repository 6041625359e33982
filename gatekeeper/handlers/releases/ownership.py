"""The labels that AlterShield writes stay what they were, whatever other users send."""

from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import RESTORED, Reason
from gatekeeper.handlers.releases.workload import Change, Workload, relabelled, released_version
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import owned


@handler(reads=Workload, outcomes=(RESTORED,))
def protect(change: Change, listers: Listers) -> Response:
    """Restore what a user other than the reconciler dropped, changed or added. What a manifest without AlterShield's
    labels dropped (`kubectl replace`) comes back silently, everything else with a warning. When the template changes,
    the version and `defense-status` are the business of `version.stamp`. The reconciler writes the version of a release
    that the gatekeeper did not see on the workload only: in the template it would restart pods."""
    new, old = change.object, change.old_object
    if old is None or not relabelled(change):
        return NOTHING
    release = released_version(change)
    keys = () if change.user == listers.reconciler else (labels.SUSPEND,) if release else labels.OWNED
    wanted: dict[str, str | None] = {}
    warnings = []
    for key in keys:
        before, sent = old.label(key), new.label(key)
        if sent == before:
            continue
        wanted[key] = before
        if sent is not None or (key == labels.SUSPEND and not _replaced(old, new)):
            warnings.append(owned(key, before))
    template_wanted: dict[str, str | None] = {}
    if not release:
        before, sent = old.template_label(labels.VERSION), new.template_label(labels.VERSION)
        if sent != before:
            template_wanted[labels.VERSION] = before
            if sent is not None and not warnings:
                warnings.append(owned(labels.VERSION, before))
    if not wanted and not template_wanted:
        return NOTHING
    return Response(wanted, template_wanted, warnings=tuple(warnings), reason=Reason.RESTORED)


def _replaced(old: Workload, new: Workload) -> bool:
    """Whether the object was written from a manifest without AlterShield's labels: all of them are gone, and there was
    more than the one that a user may have wanted to remove."""
    had = [key for key in labels.OWNED if old.label(key) is not None]
    return len(had) > 1 and all(new.label(key) is None for key in labels.OWNED)
