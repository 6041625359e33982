"""Remembers admitted releases until the status of ReleaseLimits counts them."""

from altershield.api.annotations import ROLLOUT
from altershield.gates.limits import LIMITS
from altershield.workloads.held import steps
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.closed import judgeable
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response


@handler(reads=Workload)
def count_admitted(change: Change, listers: Listers) -> Response:
    """Remember a release that no handler before this one denied. A dry run counts nothing."""
    if listers.gates.have(LIMITS) and not change.dry_run and released_version(change):
        hold = steps({ROLLOUT: change.object.rollout}) if change.object.rollout is not None else None
        held = hold is not None and not hold.pods
        listers.admissions.add(judgeable(change, listers), change.received, held=held)
    return NOTHING
