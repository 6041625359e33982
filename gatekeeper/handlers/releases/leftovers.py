"""The warning about fields that a rollback brought back and that the next release still has."""

from typing import Any

import msgspec

from altershield import releases
from altershield.api.pages import GITOPS
from altershield.releases.leftovers import leftovers
from altershield.workloads.applied import Entry, template_in
from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, last_applied, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import warning

_MAX_PATHS = 5


@handler(reads=Workload)
def warn(change: Change, listers: Listers) -> Response:
    """Warn about fields that the version that was rolled back had removed, if the next release still has them and its
    client does not store a manifest that has them.

    A client that uses server-side apply removes the fields itself. The reconciler deletes the ChangeWorkload with the
    fields when a newer version succeeds.
    """
    if change.old_object is None or change.user == listers.reconciler:
        return NOTHING
    rolled_back = listers.rolled_back(change.namespace, workload_ref(change))
    failed = next((each for each in rolled_back if each.status.restored_paths), None)
    if failed is None:
        return NOTHING
    if not released_version(change) or _is_server_side(change):
        return NOTHING
    paths = leftovers(failed.status.restored_paths, _template(change), _manifest(change))
    if not paths:
        return NOTHING
    version = releases.version_of(failed)
    text = f"fields that version {version} had removed and that its rollback brought back"
    return Response(
        warnings=(
            warning(f"AlterShield: {change.kind} {change.name} still has {text}"),
            *(warning(f"this field is still there: {path}") for path in paths[:_MAX_PATHS]),
            warning(f"if your manifest lacks them, see {GITOPS}"),
        )
    )


def _template(change: Change) -> dict[str, Any]:
    template = change.object.spec.template
    spec = msgspec.json.decode(template.spec) if template.spec else {}
    return {"metadata": template.metadata or {}, "spec": spec}


def _manifest(change: Change) -> dict[str, Any] | None:
    applied = last_applied(change.object)
    return template_in(applied) if applied else None


def _is_server_side(change: Change) -> bool:
    """Whether a client owns fields of the template by server-side apply. ReviewError: the owners cannot be read."""
    raw = change.object.metadata.managed_fields
    try:
        entries = msgspec.json.decode(raw, type=tuple[Entry, ...]) if raw else ()
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReviewError("metadata.managedFields in the request is not a list of field managers") from error
    return any(each.operation == "Apply" and each.has_template for each in entries)
