"""Checks of a release that are about no batch of pods. Pure functions."""

from altershield.api.change_pod import ChangePodSpec
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.check_specs import CheckPhase
from altershield.api.rollout import COUNTS, Phase, RolloutStatus
from altershield.releases import state

_UNDER_WAY = (WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD)


def asked(release: ChangeWorkload, checks: ChangePodSpec) -> bool:
    """Whether the release waits for the checks of this ChangePod."""
    if release.spec.workload_generation != checks.workload_generation or state(release) not in _UNDER_WAY:
        return False
    status = release.status.rollout
    if checks.phase == CheckPhase.POST_RELEASE:
        return True
    return waits_for_checks(status) and status.step == checks.step


def waits_for_checks(status: RolloutStatus) -> bool:
    """Whether checks run before the present step: the release is held, and waits for nothing else. A check that passed
    long before the step would prove little."""
    return status.phase == Phase.HELD and all(each in COUNTS for each in status.waiting_for)


def may_end_checks(old: ChangeWorkload, new: ChangeWorkload) -> bool:
    """Whether the change may mean that the release does not wait for checks any more that run."""
    before, after = old.status.rollout, new.status.rollout
    return state(old) is not state(new) or (before.phase, before.step, before.waiting_for) != (
        after.phase,
        after.step,
        after.waiting_for,
    )
