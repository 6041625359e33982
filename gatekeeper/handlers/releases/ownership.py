"""Users cannot change the labels that AlterShield writes, and cannot put them into a pod template."""

from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import RESTORED, Reason
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, is_stamped, relabelled
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import restored_warning, warning


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


@handler(reads=Workload, outcomes=(RESTORED,))
def protect(change: Change, listers: Listers) -> Response:
    """Restore AlterShield's labels that a user other than the reconciler removed, changed or added.

    The response has a warning, unless the user sent a manifest without AlterShield's labels (`kubectl replace`): the
    template may then lack what a later webhook adds, so that `version.stamp` takes it for a release at first. If the
    template changes, `version.stamp` sets the version and removes `defense-status`. Nobody writes a version into a
    template that is not released, because this would restart pods: the reconciler writes the version of an ungated
    release on the workload only.
    """
    new, old = change.object, change.old_object
    if old is None or not relabelled(change):
        return NOTHING
    version = released_version(change)
    keys = () if change.user == listers.reconciler else (labels.SUSPEND,) if version else labels.OWNED
    stamped = is_stamped(new) and new.label(labels.DEFENSE_STATUS) is None
    wanted: dict[str, str | None] = {}
    warnings = []
    for key in keys:
        before, sent = old.label(key), new.label(key)
        if sent == before:
            continue
        wanted[key] = before
        if key == labels.VERSION and stamped:
            continue
        if sent is not None or (key == labels.SUSPEND and not _replaced(old, new)):
            warnings.append(restored_warning(key, before))
    template_wanted: dict[str, str | None] = {}
    if not version:
        before, sent = old.template_label(labels.VERSION), new.template_label(labels.VERSION)
        if sent != before:
            template_wanted[labels.VERSION] = before
            if sent is not None and not warnings and not stamped:
                warnings.append(restored_warning(labels.VERSION, before))
    if not wanted and not template_wanted:
        return NOTHING
    return Response(wanted, template_wanted, warnings=tuple(warnings), reason=Reason.RESTORED)


def _replaced(old: Workload, new: Workload) -> bool:
    """Whether the user sent a manifest without AlterShield's labels: all of them are missing, and there were several.
    A single missing label may have been removed on purpose."""
    had = [key for key in labels.OWNED if old.label(key) is not None]
    return len(had) > 1 and all(new.label(key) is None for key in labels.OWNED)
