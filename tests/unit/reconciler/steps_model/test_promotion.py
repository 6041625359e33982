"""Promotions of releases in steps on the simulated cluster."""

import msgspec
import pytest

from altershield.api.released_by import MAX_USER
from altershield.api.rollout import Phase, Rollout, Step
from altershield.api.workload_requests import Request

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


@pytest.mark.parametrize(("by", "result"), [("u" * 300, "Refused"), ("u" * MAX_USER, "Refused"), ("alice", "Done")])
def test_user_who_released_it_does_not_approve_also_with_a_name_that_the_gatekeeper_cut(by: str, result: str) -> None:
    own = spec_of("Deployment", 1, 0, 0, parallel=False)
    rollout = msgspec.structs.replace(ROLLOUT, other_approver=True)
    world = with_second_version("Deployment", own, replicas=3, rollout=rollout, observe=10, seconds=60.0)
    spec = msgspec.structs.replace(world.stored().spec, released_by="u" * MAX_USER)
    world.releases[world.version] = msgspec.structs.replace(world.stored(), spec=spec)
    world.edit_status(request=Request("Promote", by, "seen"))
    world.go_on(60.0)
    assert [each.result for each in world.status().actions] == [result]
