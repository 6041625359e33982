"""Whether a change goes back to the version before. This is possible at any time."""

from altershield import releases
from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import WorkloadState
from altershield.workloads.held import steps
from gatekeeper.handlers.releases.workload import Change, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.projection import Release

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
    of_present = present_release(change, listers)
    before = of_present.status.previous if of_present is not None else None
    if before is None or before.fingerprint != version or before.left:
        return False
    target = listers.release(change.namespace, workload_ref(change), version)
    if target is None:
        return True
    failed = releases.rolled_back(target) or releases.state(target) in _FAILED
    before_target = target.status.previous
    went_back = before_target.fingerprint == old.label(labels.VERSION) and not before_target.left
    return not failed and not went_back


def succeeded(change: Change, listers: Listers) -> bool:
    """Whether the present version has succeeded."""
    found = present_release(change, listers)
    return found is not None and releases.state(found) is WorkloadState.SUCCESS


def present_release(change: Change, listers: Listers) -> Release | None:
    """The ChangeWorkload of the version before the change, or None."""
    version = change.old_object.label(labels.VERSION) if change.old_object is not None else None
    return listers.release(change.namespace, workload_ref(change), version) if version else None
