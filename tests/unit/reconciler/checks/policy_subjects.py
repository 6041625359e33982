"""Subjects of the checks `http` and `job`."""

import msgspec

from altershield.api.check_specs import CheckSpec, Phase
from altershield.api.policy import AppliedPolicy
from reconciler.checks.check import Subject
from tests.unit.altershield.releases.builders import NOW, change_pod, release

PODS = ("sleep-a", "sleep-b")


def subject(check: CheckSpec, phase: Phase = Phase.POST, *, deadline: float = NOW + 120, uid: str = "") -> Subject:
    """A batch of the release of V1, with the policy `rules` of its namespace."""
    change_workload = release()
    policy = AppliedPolicy(namespace="default", name="rules", generation=1, checks=(check,))
    spec = msgspec.structs.replace(change_workload.spec, policy=policy)
    batch = change_pod(2, *PODS)
    if uid:
        batch = msgspec.structs.replace(batch, metadata=msgspec.structs.replace(batch.metadata, uid=uid))
    return Subject(batch, msgspec.structs.replace(change_workload, spec=spec), check, phase, NOW, deadline)
