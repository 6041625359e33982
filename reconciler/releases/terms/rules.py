"""The settings and times of one release: the reconciler's, changed by the DefensePolicy of the release. Pure functions.

The settings `blocking` and `rollback` are kill switches: if one is off, no policy can switch it on for its releases.
"""

from dataclasses import dataclass, replace
from typing import Any

from altershield.api.check_specs import CheckPhase
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy, OnStartFailure
from altershield.releases.enforcement import named, only_text
from reconciler.releases.pods.health import Timing


def settings_of(settings: Settings, policy: AppliedPolicy) -> Settings:
    """The settings that are in effect for a release with this policy."""
    if not policy.name:
        return settings
    changed: dict[str, Any] = {"on_failure": policy.on_failure}
    if policy.batch is not None:
        changed |= {"branch": True, "content": str(policy.batch)}
    if policy.rollback_share is not None:
        changed["share"] = str(policy.rollback_share)
    if policy.on_start_failure is OnStartFailure.SUSPEND:
        changed["no_start_rollback"] = f"{named(policy)} has onStartFailure: suspend"
    only = only_text(policy)
    if only and settings.blocking:
        changed |= {"blocking": False, "blocking_off": only}
    if only and settings.rollback:
        changed |= {"rollback": False, "rollback_off": only}
    return replace(settings, **changed)


@dataclass(frozen=True, slots=True)
class Settle:
    """When a release that succeeded settles, and how many restarts fail its pods until then."""

    seconds: float
    """For how long its pods have to stay up after its Success."""
    restarts: int
    """How many more restarts than before fail a pod."""

    @property
    def window(self) -> float:
        """The seconds after Success in which restarts count. A pod that restarts less often than once in `seconds` does
        not fail in this time."""
        return self.seconds * self.restarts


def settle_of(timing: Timing, policy: AppliedPolicy) -> Settle:
    """When a release with this policy settles. `timing`: the times of the release."""
    seconds = timing.start_timeout if policy.settle_seconds is None else float(policy.settle_seconds)
    return Settle(seconds, policy.settle_restarts)


def timing_of(timing: Timing, policy: AppliedPolicy) -> Timing:
    """The times of a release with this policy."""
    changed = {
        "start_timeout": policy.start_timeout_seconds,
        "observe": policy.observe_seconds,
        "max_start": policy.max_start_seconds,
        "unschedulable": policy.unschedulable_seconds,
    }
    return replace(timing, **{name: float(value) for name, value in changed.items() if value is not None})


def checks_batches(policy: AppliedPolicy) -> bool:
    """Whether the policy has checks of batches of pods."""
    return any(each.phase is CheckPhase.POST_BATCH for each in policy.checks)


def checks_release(policy: AppliedPolicy) -> bool:
    """Whether the policy has checks that are about no batch of pods."""
    return any(each.phase is not CheckPhase.POST_BATCH for each in policy.checks)
