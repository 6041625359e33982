"""Each release gets a version: the fingerprint of its template, as a label of the workload and of the template."""

from altershield.api import labels
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.bypass import removes_its_pass
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change, Workload, is_stamped, relabelled, released_version
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Decision, Outcome, Response
from gatekeeper.texts import restored_warning, warning

_OUTCOMES = (
    Outcome(Decision.PATCHED, Reason.NEW_VERSION),
    Outcome(Decision.ALLOWED, Reason.NEW_VERSION),  # the labels are set already: the webhook is called twice
)


@handler(reads=Workload, outcomes=_OUTCOMES)
def stamp(change: Change, listers: Listers) -> Response:
    """Set the version of a workload that is created or whose template changes. Remove `defense-status`, also if the
    reconciler makes the change: the new version is not processed. Keep `ignored-suspend` until it is processed."""
    version = released_version(change)
    if not version:
        return NOTHING
    kept = {labels.IGNORED_SUSPEND: "true"} if removes_its_pass(change) else {}
    return Response(
        labels={labels.VERSION: version, labels.DEFENSE_STATUS: None, **kept},
        template_labels={labels.VERSION: version},
        warnings=_warnings(change, version) if relabelled(change) else (),
        audit={"version": version},
        reason=Reason.NEW_VERSION,
    )


def _warnings(change: Change, released: str) -> tuple[str, ...]:
    """Warn a user who wrote these labels. Labels that have their stored values cause no warning."""
    new, old = change.object, change.old_object
    known = {None, released}
    before = None
    if old is not None:
        known |= {old.label(labels.VERSION), old.template_label(labels.VERSION)}
        before = old.label(labels.DEFENSE_STATUS)
    version, template_version = new.label(labels.VERSION), new.template_label(labels.VERSION)
    status = new.label(labels.DEFENSE_STATUS)
    warnings = []
    if (version not in known or template_version not in known) and not is_stamped(new):
        text = f"AlterShield: only AlterShield writes the label {labels.VERSION}: for this template it is {released}"
        warnings.append(warning(text))
    if status is not None and status != before:
        warnings.append(restored_warning(labels.DEFENSE_STATUS, None))
    return tuple(warnings)
