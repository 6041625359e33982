"""Promotions of releases in steps on the simulated cluster."""

from altershield.api.rollout import Phase, Rollout, Step

from .cluster import spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 0, approval=True),))


def test_promotion_is_not_refused_while_a_new_leader_observes_the_pods_again() -> None:
    own = spec_of("Deployment", 1, 0, 0, parallel=False)
    world = with_second_version("Deployment", own, replicas=3, rollout=ROLLOUT, observe=10, seconds=60.0)
    assert world.steps_status.phase == Phase.WAITING_FOR_APPROVAL
    world.die()
    world.request("Promote")
    world.settle()
    assert world.status().request is not None, "it is not known yet whether the pods are still up"
    world.go_on(60.0)
    assert world.steps_status.passed_steps[0].promoted_by == "alice"
    assert [each.result for each in world.status().actions] == ["Done"]
