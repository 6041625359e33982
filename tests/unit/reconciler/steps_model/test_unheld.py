"""Held fields that somebody changes while no gatekeeper answers, on the simulated cluster."""

from typing import Any

from altershield.api.change_workload import WorkloadState
from altershield.api.rollout import Rollout, Step
from altershield.rollout.admission import State
from altershield.workloads.held import with_values

from .checks import SURGE, UNAVAILABLE
from .cluster import Cluster, spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 120), Step("50%", 0)))


def begun(surge: int, unavailable: int | str) -> Cluster:
    """The second version of a Deployment with four replicas is held at its first step, with one pod."""
    own = spec_of("Deployment", surge, unavailable, 0, parallel=False)
    return with_second_version("Deployment", own, replicas=4, rollout=ROLLOUT, observe=1, seconds=20.0)


def edit(world: Cluster, fields: dict[str, Any]) -> None:
    """Somebody changes held fields, and the controller acts before a gatekeeper answers again."""
    world.gatekeeper = False
    world.user = with_values(world.user, fields)
    world.keep(State(world.annotation, with_values(world.spec, fields)))
    world.go_on(0.0)
    world.gatekeeper = True
    world.go_on(10.0)


def test_release_ends_although_its_controller_created_pods_above_the_held_surge() -> None:
    world = begun(0, "50%")
    edit(world, {SURGE: 1, UNAVAILABLE: 0})
    assert len(world.pods) > 4
    world.go_on(2000.0)
    assert world.state() == WorkloadState.SUCCESS
    assert world.spec == world.user


def test_strategy_counts_only_after_the_release() -> None:
    world = begun(1, 0)
    edit(world, {UNAVAILABLE: 3})
    hold = world.hold
    assert hold is not None
    assert (hold.strategy[UNAVAILABLE], hold.fields[UNAVAILABLE]) == (0, 3)
    world.go_on(2000.0)
    assert world.state() == WorkloadState.SUCCESS
    assert world.spec == world.user


def test_failed_release_is_held_again() -> None:
    """Else its version would get all pods: with another `minReadySeconds`, they are available."""
    world = begun(1, 0)
    world.judge(world.of("good-2")[0], "unpass")
    world.go_on(10.0)
    assert world.state() == WorkloadState.SUSPEND
    edit(world, {"/spec/minReadySeconds": 5})
    world.go_on(2000.0)
    assert len(world.of("good-2")) <= 2
    assert world.hold is not None
    assert world.hold.fields["/spec/minReadySeconds"] == 5
