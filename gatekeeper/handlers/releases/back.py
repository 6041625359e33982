"""Whether a change goes back to the version before. This is possible at any time."""

from altershield import releases
from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import WorkloadState
from altershield.workloads.held import steps
from gatekeeper.handlers.releases.workload import Change, workload_ref
from gatekeeper.listers import Listers

_FAILED = (WorkloadState.SUSPEND, WorkloadState.FAILED)


def goes_back(change: Change, version: str, listers: Listers) -> bool:
    """Whether a change releases the version before again: the base of a release in steps, or the last version that
    succeeded before the present one. A version that failed, or from which somebody went back, is not such a version."""
    old = change.old_object
    if old is None:
        return False
    hold = steps({ROLLOUT: old.rollout}) if old.rollout is not None else None
    if hold is not None and hold.base == version:
        return True
    workload, present = workload_ref(change), old.label(labels.VERSION) or ""
    of_present = listers.release(change.namespace, workload, present) if present else None
    if of_present is None or of_present.status.previous.fingerprint != version:
        return False
    target = listers.release(change.namespace, workload, version)
    if target is None:
        return True
    failed = releases.rolled_back(target) or releases.state(target) in _FAILED
    return not failed and target.status.previous.fingerprint != present
