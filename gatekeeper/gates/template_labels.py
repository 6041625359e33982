"""Labels that AlterShield writes on workloads and pods have no place in a pod template, whoever sends them."""

from altershield.api import labels
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import warning
from gatekeeper.review import Change
from gatekeeper.view import View


def purge(change: Change, view: View) -> Opinion:
    """Take them out of a template that is released: pods made of it would count as up from the start. Where the
    template is otherwise what it was, they stay what they were, or pods would be restarted for them."""
    sent = change.new.template_labels or {}
    stored = (change.old.template_labels if change.old is not None else None) or {}
    keys = [key for key in labels.NOT_IN_TEMPLATES if key in sent or key in stored]
    if not keys:
        return NOTHING
    release = change.release
    wanted: dict[str, str | None] = {}
    warnings = []
    for key in keys:
        kept = None if release else stored.get(key)
        if sent.get(key) == kept:
            continue
        wanted[key] = kept
        outcome = "it was taken out" if kept is None else f"it stays {kept!r} until the next release"
        warnings.append(warning(f"label {key} does not belong into a pod template: {outcome}"))
    return Opinion(template_labels=wanted, warnings=tuple(warnings), reason="restored") if wanted else NOTHING
