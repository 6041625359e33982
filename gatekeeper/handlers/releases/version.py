"""A release gets its version: the fingerprint of its template, on the workload and on the template."""

import re

from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change, Workload, relabelled, released_version
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Outcome, Response
from gatekeeper.texts import owned, warning

_VERSION = re.compile(r"[0-9a-f]{32}")
_OUTCOMES = (
    Outcome(Decision.PATCHED, Reason.NEW_VERSION),
    Outcome(Decision.ALLOWED, Reason.NEW_VERSION),  # already stamped, as when the webhook is called twice
)


@handler(reads=Workload, outcomes=_OUTCOMES)
def stamp(change: Change, listers: Listers) -> Response:
    """Stamp what was created or has a changed template. The new version is not verified, so `defense-status` is
    removed, whoever made the change."""
    version = released_version(change)
    if not version:
        return NOTHING
    return Response(
        labels={labels.VERSION: version, labels.DEFENSE_STATUS: None},
        template_labels={labels.VERSION: version},
        warnings=_warnings(change, version) if relabelled(change) else (),
        audit={"version": version},
        reason=Reason.NEW_VERSION,
    )


def _warnings(change: Change, release: str) -> tuple[str, ...]:
    """Say so where the user wrote these labels, not where they are what they were before."""
    new, old = change.object, change.old_object
    known = {None, release}
    before = None
    if old is not None:
        known |= {old.label(labels.VERSION), old.template_label(labels.VERSION)}
        before = old.label(labels.DEFENSE_STATUS)
    version, template_version = new.label(labels.VERSION), new.template_label(labels.VERSION)
    status = new.label(labels.DEFENSE_STATUS)
    warnings = []
    if (version not in known or template_version not in known) and not _is_stamp(version, template_version):
        text = f"AlterShield: only AlterShield writes the label {labels.VERSION}: for this template it is {release}"
        warnings.append(warning(text))
    if status is not None and status != before:
        warnings.append(owned(labels.DEFENSE_STATUS, None))
    return tuple(warnings)


def _is_stamp(version: str | None, template_version: str | None) -> bool:
    """One version in both places is a stamp of ours, from before another webhook changed the template."""
    return version == template_version and _VERSION.fullmatch(version or "") is not None
