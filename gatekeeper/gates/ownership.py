"""AlterShield's own labels stay as they were, whatever others send."""

from altershield.api import labels
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import warning
from gatekeeper.review import Change, Workload
from gatekeeper.view import View


def protect(change: Change, view: View) -> Opinion:
    """Put back what another user than the reconciler dropped, changed or added. What a manifest without our
    labels dropped (`kubectl replace`) comes back silently, everything else with a warning. A template's change
    settles the version and `defense-status` in its own gate. The reconciler versions what slipped past the gate, on
    the workload: in its template the version is nobody's to write, since that would restart pods."""
    if not change.relabelled():
        return NOTHING
    new, old, release = change.new, change.old, change.release()
    owned = () if change.user == view.reconciler else (labels.SUSPEND,) if release else labels.OWNED
    wanted: dict[str, str | None] = {}
    warnings = []
    for key in owned:
        before, sent = old.label(key) if old else None, new.label(key)
        if sent == before:
            continue
        wanted[key] = before
        if sent is not None or (key == labels.SUSPEND and not _replaced(old, new)):
            warnings.append(_warning(key, before))
    template_wanted: dict[str, str | None] = {}
    if old is not None and not release:
        before, sent = old.template_label(labels.VERSION), new.template_label(labels.VERSION)
        if sent != before:
            template_wanted[labels.VERSION] = before
            if sent is not None and not warnings:
                warnings.append(_warning(labels.VERSION, before))
    if not wanted and not template_wanted:
        return NOTHING
    return Opinion(wanted, template_wanted, warnings=tuple(warnings), reason="restored")


def _replaced(old: Workload | None, new: Workload) -> bool:
    """Whether the object was written from a manifest that knows none of our labels: all of them are gone, and
    not the one alone that somebody wanted off."""
    had = [key for key in labels.OWNED if old is not None and old.label(key) is not None]
    return len(had) > 1 and all(new.label(key) is None for key in labels.OWNED)


def _warning(key: str, before: str | None) -> str:
    outcome = "it was taken off" if before is None else f"it stays {before!r}"
    return warning(f"label {key} is AlterShield's own: {outcome}")
