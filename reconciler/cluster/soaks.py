"""Checks that are repeated while a step of a release soaks. Pure functions."""

from collections.abc import Iterable

from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import CheckState
from altershield.api.check_specs import CheckSpec, OnUnknown, Phase
from altershield.api.rollout import Phase as StepPhase
from reconciler.cluster.batch import Batch


def repeats(release: ChangeWorkload) -> bool:
    """Whether the pods of the release soak now, and some checks are repeated meanwhile."""
    soaks = release.status.rollout.phase == StepPhase.SOAKING
    return soaks and any(each.soak_interval for each in release.spec.policy.checks)


def why_soaking(checks: Iterable[CheckSpec], batches: Iterable[Batch]) -> str:
    """Why the soak of a step cannot end although its time is over, as a sentence; empty if it can: the last run of each
    repeated check decides. A run that has no result and holds is repeated until it has one. A person may promote the
    release meanwhile.

    `checks`: those of the release's policy. `batches`: those of which pods exist.
    """
    repeated = {each.name: each for each in checks if each.soak_interval}
    for batch in batches:
        for name, phase, state in batch.checks:
            spec = repeated.get(name) if phase == Phase.POST else None
            if spec is None or not batch.done:
                continue
            if state == CheckState.RUNNING:
                return f"the check {name} of {batch.metadata.name} runs"
            if state == CheckState.UNKNOWN and spec.if_unknown is OnUnknown.HOLD:
                return f"the check {name} of {batch.metadata.name} has no result"
    return ""
