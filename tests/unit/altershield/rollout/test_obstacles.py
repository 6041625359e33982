"""Why a release cannot be made in steps."""

import pytest

from altershield.rollout.obstacles import CREATED, NO_REPLICAS, obstacle
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
    assert obstacle(replicas=1, controller=None, keys=["app", key]) == expected


def test_other_obstacles() -> None:
    assert obstacle(replicas=1, controller=None) == ""
    assert obstacle(replicas=0, controller=None) == NO_REPLICAS
    assert obstacle(replicas=1, controller=OWNER) == "Canary web controls it"
    assert obstacle(replicas=1, controller=None, created=True) == CREATED
