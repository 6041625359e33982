"""A workload that is deleted and created again stays suspended."""

from collections.abc import Sequence

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import restored_warning, time_text, warning


@handler(reads=Workload)
def inherit(change: Change, listers: Listers) -> Response:
    """Suspend a new workload if a workload of the same kind and name was suspended when it was deleted without its
    ChangeWorkloads (`--cascade=orphan`). The setting `blocking` switches this off. Remove the label `suspend` from any
    other new workload: a manifest that was copied from a suspended workload contains it."""
    if change.user == listers.reconciler:
        return NOTHING
    release = _failed(listers.orphaned(change.namespace, workload_ref(change))) if change.name else None
    sent = change.object.label(labels.SUSPEND)
    if release is None or not listers.blocking:
        if sent is None:
            return NOTHING
        return Response({labels.SUSPEND: None}, warnings=(restored_warning(labels.SUSPEND, None),))
    since = releases.since(release)
    if sent == str(since):
        return NOTHING
    text = (
        f"AlterShield: {change.kind} {change.name} was suspended when it was deleted, and is suspended again"
        f"{time_text('since', since)}: version {releases.version_of(release)} failed verification"
    )
    return Response({labels.SUSPEND: str(since)}, warnings=(warning(text),), audit={"inherited": release.metadata.name})


def _failed(orphaned: Sequence[Release]) -> Release | None:
    """The release that was suspended first."""
    suspended = [release for release in orphaned if releases.state(release) == WorkloadState.SUSPEND]
    return min(suspended, key=releases.since, default=None)
