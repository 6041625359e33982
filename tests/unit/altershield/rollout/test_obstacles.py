"""Why a release cannot be made in steps."""

import pytest

from altershield.rollout.obstacles import CREATED, NO_REPLICAS, NO_STEPS, obstacle
from altershield.workloads.releasers import other_releaser
from kube_base.meta import OwnerReference

OWNER = OwnerReference("Canary", "web", "u", controller=True)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("rollout.argoproj.io/revision", "Argo Rollouts releases it"),
        ("argo-rollouts.argoproj.io/managed-by-rollouts", "Argo Rollouts releases it"),
        ("flagger.app/config-tracking", "Flagger releases it"),
        ("rollouts.kruise.io/in-progressing", "Kruise Rollouts releases it"),
        ("batchrelease.rollouts.kruise.io/control-info", "Kruise Rollouts releases it"),
        ("argocd.argoproj.io/tracking-id", ""),
        ("notflagger.app/a", ""),
        ("flagger.app", ""),
        ("app", ""),
        ("", ""),
    ],
)
def test_workload_that_another_controller_releases(key: str, expected: str) -> None:
    assert other_releaser((), ["app", key]) == expected


def test_owner_releases_its_workload_only_if_it_controls_it() -> None:
    assert other_releaser([OWNER], ["flagger.app/a"]) == "Canary web controls it"
    assert other_releaser([OwnerReference("Canary", "web", "u")], ()) == ""


def test_other_obstacles() -> None:
    assert obstacle(replicas=1) == ""
    assert obstacle(replicas=0) == NO_REPLICAS
    assert obstacle(replicas=1, releaser="Flagger releases it", has_steps=False) == "Flagger releases it"
    assert obstacle(replicas=1, has_steps=False) == NO_STEPS
    assert obstacle(replicas=1, releaser="Flagger releases it", created=True) == CREATED
