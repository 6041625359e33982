"""Each release gets an annotation that says who released it, and when."""

from altershield.api import released_by
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.closed import own_labels
from gatekeeper.handlers.releases.reasons import RESTORED, Reason
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response

_CALLED_AGAIN = 10  # seconds within which an API server calls the webhook a second time for the same request


@handler(reads=Workload, outcomes=(RESTORED,))
def attribute(change: Change, listers: Listers) -> Response:
    """Set the annotation of a workload that is created or whose template changes. Otherwise, restore the annotation
    that a user removed, changed or added, without a warning: `kubectl replace` sends manifests without it."""
    old, sent = change.old_object, change.object.released_by
    version = released_version(change)
    if version:
        if _is_ours(change, listers, version):
            return NOTHING
        return Response(annotations={released_by.ANNOTATION: _encoded(change, listers, version, 0)})
    before = old.released_by if old is not None else None
    if sent == before or change.user == listers.reconciler:
        return NOTHING
    return Response(annotations={released_by.ANNOTATION: before}, reason=Reason.RESTORED)


def _is_ours(change: Change, listers: Listers, version: str) -> bool:
    """Whether the annotation has been set for this release: by the reconciler, which names the user who requested a
    rollback, or by this handler, if the API server calls it again after another webhook changed the object."""
    found = released_by.decode(change.object.released_by, version)
    if found is None:
        return False
    if change.user == listers.reconciler:
        return True
    sent = change.object.released_by
    return any(sent == _encoded(change, listers, version, ago) for ago in range(_CALLED_AGAIN))


def _encoded(change: Change, listers: Listers, version: str, ago: float) -> str:
    """The annotation of this release, which was reviewed so many seconds ago. Gates judge a later release by the labels
    of this one, too."""
    labels = own_labels(change) if listers.gates.exist else {}
    return released_by.encode(change.user, version, change.received - ago, change.field_manager, labels)
