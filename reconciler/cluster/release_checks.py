"""Checks of a release that are about no batch of pods. Pure functions."""

from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.check_specs import CheckPhase
from altershield.api.rollout import Phase
from altershield.releases import state

_UNDER_WAY = (WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD)


def has_release_checks(release: ChangeWorkload) -> bool:
    """Whether the policy of the release has such checks."""
    return any(each.phase is not CheckPhase.POST_BATCH for each in release.spec.policy.checks)


def asked(release: ChangeWorkload, phase: str, step: int, generation: int) -> bool:
    """Whether the release waits for its checks of this phase, before this step. `generation`: the
    `spec.workloadGeneration` of the release to which the checks belong."""
    if release.spec.workload_generation != generation or state(release) not in _UNDER_WAY:
        return False
    status = release.status.rollout
    return phase == CheckPhase.POST_RELEASE or (status.phase == Phase.HELD and status.step == step)


def may_end_checks(old: ChangeWorkload, new: ChangeWorkload) -> bool:
    """Whether the change may mean that the release does not wait for checks any more that run."""
    if not has_release_checks(new):
        return False
    before, after = old.status.rollout, new.status.rollout
    return (before.phase, before.step) != (after.phase, after.step) or state(old) is not state(new)
