"""Which release the label `ignored-suspend` let pass, and the record of it. Pure functions."""

from collections.abc import Sequence

from altershield.api.condition_types import ConditionType
from altershield.api.meta import has_reason
from altershield.api.workload_requests import BYPASS, Action, Result
from altershield.releases.release import rolled_back, version_of
from altershield.workloads.workload import Workload
from kube_base.times import unix
from reconciler.cluster.release import Release, went_back_to
from reconciler.releases.decisions.answers import with_action
from reconciler.releases.terms.draft import begin, with_update_time
from reconciler.releases.terms.effects import Announce, Decision
from reconciler.releases.terms.snapshot import RollbackReason


def is_rollback(workload: Workload, others: Sequence[Release]) -> bool:
    """Whether the current version was released by a rollback of the version before it. `others`: the workload's other
    ChangeWorkloads.

    A rollback is admitted without the label `ignored-suspend`. So the label stays for the next release of a user.
    """
    before = max(others, key=lambda each: each.spec.workload_generation, default=None)
    return before is not None and rolled_back(before) and went_back_to(before, workload)


def bypasses(release: Release, workload: Workload) -> bool:
    """Whether the label `ignored-suspend` let this release of a user pass, and this is not recorded yet. The release
    has just begun, so the workload still has the label."""
    conditions, began = release.status.conditions, release.spec.create_time_unix
    denied = workload.suspended or has_reason(conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN)
    recorded = any(each.verb == BYPASS and unix(each.time) >= began for each in release.status.actions)
    return workload.ignores_suspension and bool(denied) and not recorded


def bypassed(release: Release, by: str, now: float) -> Decision:
    """Record that the release passed by the label `ignored-suspend`. `by`: the user who released it; empty if the user
    is not known."""
    outcome = "admitted, although releases were suspended, because its workload had the label ignored-suspend"
    if has_reason(release.status.conditions, ConditionType.ROLLED_BACK, RollbackReason.RELEASED_AGAIN):
        outcome = "admitted, although it had been rolled back, because its workload had the label ignored-suspend"
    draft = with_action(begin(release, now), Action(by=by, verb=BYPASS, result=Result.DONE, outcome=outcome))
    message = f"version {version_of(release)} was {outcome}" + (f"; released by {by}" if by else "")
    return Decision(with_update_time(draft.status, now), after=(Announce("SuspensionBypassed", message),))
