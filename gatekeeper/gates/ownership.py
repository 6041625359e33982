"""AlterShield's own labels stay as they were, whatever others send."""

from altershield.api import labels
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import owned
from gatekeeper.review import Change, Workload
from gatekeeper.view import View


def protect(change: Change, view: View) -> Opinion:
    """Put back what another user than the reconciler dropped, changed or added. What a manifest without our
    labels dropped (`kubectl replace`) comes back silently, everything else with a warning. A template's change
    settles the version and `defense-status` in its own gate. The reconciler versions what slipped past the gate, on
    the workload: in its template the version is nobody's to write, since that would restart pods."""
    new, old = change.new, change.old
    if old is None or not change.relabelled():
        return NOTHING
    release = change.release
    keys = () if change.user == view.reconciler else (labels.SUSPEND,) if release else labels.OWNED
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
    return Opinion(wanted, template_wanted, warnings=tuple(warnings), reason="restored")


def _replaced(old: Workload, new: Workload) -> bool:
    """Whether the object was written from a manifest that knows none of our labels: all of them are gone, and
    not the one alone that somebody wanted off."""
    had = [key for key in labels.OWNED if old.label(key) is not None]
    return len(had) > 1 and all(new.label(key) is None for key in labels.OWNED)
