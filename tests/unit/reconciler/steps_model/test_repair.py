"""Repairs of a version that failed, on the simulated cluster."""

from altershield.api import labels
from altershield.api.rollout import Phase, Rollout, Step

from .cluster import spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 0), Step("50%", 60)))


def test_version_that_failed_on_all_pods_has_none_in_the_soak_of_its_repair() -> None:
    own = spec_of("Deployment", 1, 0, 0, parallel=False)
    world = with_second_version("Deployment", own, replicas=4, rollout=ROLLOUT, observe=1, seconds=200.0)
    assert world.steps_status.phase == Phase.DONE
    world.judge(world.of("good-2")[0], "unpass")
    world.go_on(10.0)
    assert world.suspended
    world.own_labels[labels.IGNORED_SUSPEND] = "true"
    world.release("good-3")
    world.on_release("good-3")
    world.go_on(50.0)
    assert world.steps_status.phase == Phase.SOAKING
    assert [pod.image for pod in world.pods.values()] == ["good-3"] * 4
