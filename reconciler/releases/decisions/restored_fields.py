"""Records that a release still has fields that a rollback brought back. Pure functions."""

from collections.abc import Iterable

from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.pages import GITOPS
from altershield.releases.leftovers import leftovers, text
from altershield.releases.release import version_of
from altershield.workloads.adapter import Object
from altershield.workloads.workload import Workload
from reconciler.cluster.release import Release
from reconciler.releases.terms.draft import begin, with_update_time
from reconciler.releases.terms.effects import Announce, Decision


def brought_back(workload: Workload, others: Iterable[Release]) -> Release | None:
    """The newest release that was rolled back and whose fields the rollback brought back, if another version than the
    one it went back to is released now. None if there is none."""
    found = [each for each in others if each.status.restored_paths and each.status.rollback_to != workload.version]
    return max(found, key=lambda each: each.status.entry_time_unix, default=None)


def kept(release: Release, failed: Release, template: Object, manifest: Object | None, now: float) -> Decision:
    """Say which of the fields the release still has. `manifest`: the template in the manifest of the client, if the
    client stores it. An empty decision if it has none of them, or if this is recorded already."""
    paths = leftovers(failed.status.restored_paths, template, manifest)
    if not paths or find_condition(release.status.conditions, ConditionType.RESTORED_FIELDS) is not None:
        return Decision()
    message = f"{text(version_of(failed), paths)}; if the manifest lacks them, see {GITOPS}"
    draft = begin(release, now).condition(ConditionType.RESTORED_FIELDS, True, "StillPresent", message)
    return Decision(with_update_time(draft.status, now), after=(Announce("RestoredFieldsLeft", message),))
