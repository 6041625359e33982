"""A release gets its version: the fingerprint of its template, on the workload and on the template."""

import re

from altershield.api import labels
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import warning
from gatekeeper.review import Change
from gatekeeper.view import View

_VERSION = re.compile(r"[0-9a-f]{32}")


def stamp(change: Change, view: View) -> Opinion:
    """Stamp what was created or has a changed template. The new version is not verified, so `defense-status`
    goes, whoever made the change."""
    if not change.template_changed:
        return NOTHING
    version = change.version
    return Opinion(
        labels={labels.VERSION: version, labels.DEFENSE_STATUS: None},
        template_labels={labels.VERSION: version},
        warnings=tuple(_warnings(change, version)),
        audit={"version": version},
    )


def _warnings(change: Change, version: str) -> list[str]:
    """Say so where the user wrote these labels. What they were before is no such case, nor is one version in
    both places: that is our own stamp, from before another webhook changed the template (or an export)."""
    new, old = change.new, change.old
    warnings = []
    sent = {new.label(labels.VERSION), new.template_label(labels.VERSION)} - {None, version}
    if old is not None:
        sent -= {old.label(labels.VERSION), old.template_label(labels.VERSION)}
    stamped_before = new.label(labels.VERSION) == new.template_label(labels.VERSION)
    if sent and not (stamped_before and all(_VERSION.fullmatch(value or "") for value in sent)):
        warnings.append(warning(f"label {labels.VERSION} is AlterShield's own: it is {version} for this template"))
    status = new.label(labels.DEFENSE_STATUS)
    if status is not None and status != (old and old.label(labels.DEFENSE_STATUS)):
        warnings.append(warning(f"label {labels.DEFENSE_STATUS} is AlterShield's own: it was taken off"))
    return warnings
