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
    version = change.release
    if not version:
        return NOTHING
    return Opinion(
        labels={labels.VERSION: version, labels.DEFENSE_STATUS: None},
        template_labels={labels.VERSION: version},
        warnings=_warnings(change, version) if change.relabelled() else (),
        audit={"version": version},
        reason="new-version",
    )


def _warnings(change: Change, release: str) -> tuple[str, ...]:
    """Say so where the user wrote these labels, not where they are what they were before."""
    new, old = change.new, change.old
    known = {None, release}
    before = None
    if old is not None:
        known |= {old.label(labels.VERSION), old.template_label(labels.VERSION)}
        before = old.label(labels.DEFENSE_STATUS)
    version, template_version = new.label(labels.VERSION), new.template_label(labels.VERSION)
    status = new.label(labels.DEFENSE_STATUS)
    warnings = []
    if (version not in known or template_version not in known) and not _is_stamp(version, template_version):
        warnings.append(warning(f"label {labels.VERSION} is AlterShield's own: this template's is {release}"))
    if status is not None and status != before:
        warnings.append(warning(f"label {labels.DEFENSE_STATUS} is AlterShield's own: it was taken off"))
    return tuple(warnings)


def _is_stamp(version: str | None, template_version: str | None) -> bool:
    """One version in both places is our own stamp, from before another webhook changed the template."""
    return version == template_version and _VERSION.fullmatch(version or "") is not None
