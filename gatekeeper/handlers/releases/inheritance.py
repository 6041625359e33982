"""A workload that is deleted and created again keeps its suspension."""

from collections.abc import Sequence

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import WorkloadState
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import at, owned, warning


@handler(reads=Workload)
def inherit(change: Change, listers: Listers) -> Response:
    """Suspend a workload that is created where one of the same name, deleted without its records, was suspended,
    unless the setting `blocking` is off. Any other workload that is created with the label `suspend`, as from a copy
    of another workload, loses the label."""
    if change.user == listers.reconciler:
        return NOTHING
    release = _failed(listers.orphaned(change.namespace, workload_ref(change))) if change.name else None
    sent = change.object.label(labels.SUSPEND)
    if release is None or not listers.blocking:
        return NOTHING if sent is None else Response({labels.SUSPEND: None}, warnings=(owned(labels.SUSPEND, None),))
    since = releases.since(release)
    if sent == str(since):
        return NOTHING
    text = (
        f"AlterShield: {change.kind} {change.name} was suspended when it was deleted, and is suspended again"
        f"{at('since', since)}: version {releases.version(release)} failed verification"
    )
    return Response({labels.SUSPEND: str(since)}, warnings=(warning(text),), audit={"inherited": release.metadata.name})


def _failed(all_releases: Sequence[Release]) -> Release | None:
    """The first one that was suspended."""
    suspended = [release for release in all_releases if releases.state(release) == WorkloadState.SUSPEND]
    return min(suspended, key=releases.since, default=None)
