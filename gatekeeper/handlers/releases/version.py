"""Each release gets a version: the fingerprint of its template, as a label of the workload and of the template."""

import orjson

from altershield.api import labels
from altershield.api.fingerprint import Template, canonical, fingerprint, metadata
from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.workload import Change, Workload, is_stamped, relabelled
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
    kept = {labels.IGNORED_SUSPEND: "true"} if _removes_its_pass(change) else {}
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


def _removes_its_pass(change: Change) -> bool:
    """Whether a release removes the label `ignored-suspend` that would let it pass. `kubectl apply` does so if the
    manifest that was applied before has the label, and `kubectl replace` always does. A user who no longer wants to
    admit a release removes the label without changing the template."""
    old = change.old_object
    return old is not None and old.repairs and change.object.label(labels.IGNORED_SUSPEND) is None


def released_version(change: Change) -> str:
    """The version that the change releases. Empty if the template does not change; the labels of AlterShield in it do
    not count. A CREATE always releases a version. ReviewError: a template cannot be read."""
    return change.once(_released_version)


def _released_version(change: Change) -> str:
    old = change.old_object
    try:
        return new_version(change.object.spec.template, old.spec.template if old is not None else None)
    except RecursionError as error:
        raise ReviewError("a pod template in the request is nested too deeply") from error


def new_version(new: Template, old: Template | None) -> str:
    """The fingerprint of `new` if it differs from `old`, else an empty string. ReviewError: a template has no canonical
    form."""
    # The API server writes both objects of a review, so equal specs have equal bytes.
    if old is not None and new.spec == old.spec and metadata(new) == metadata(old):
        return ""
    try:
        return fingerprint(canonical(new))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:  # encoding fails for deep nesting
        raise ReviewError(f"the pod template in the request cannot be read: {error}") from error
