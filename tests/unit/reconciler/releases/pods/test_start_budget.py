"""Pods that may take longer than the start timeout, because their own probes or init containers allow it."""

from typing import Any

import pytest

from altershield.api.policy import AppliedPolicy
from altershield.workloads.pods import Starting
from altershield.workloads.start_budget import StartBudget
from reconciler.releases.pods.limits import limit, updated_in_place
from tests.unit.reconciler.releases.scenarios import (
    ROLLED_BACK,
    RUNNING,
    STALLED,
    SUCCESS,
    assert_rolled_back_after,
    is_over,
    is_restored,
    second_release,
    serving,
)
from tests.unit.reconciler.releases.world import SimPod, World

SLOW = {"startupProbe": {"periodSeconds": 10, "failureThreshold": 30}}


def slow_release(kind: str = "Deployment", container: Any = SLOW, **world: float) -> tuple[World, SimPod]:
    """Release v2 of a workload whose containers have these probes. Its first pod runs and is not ready."""
    made, (pod,) = second_release(kind, **world)
    made.container = container
    made.rest()
    return made, pod


def test_pod_is_overdue_after_the_time_that_its_startup_probe_allows(kind: str) -> None:
    world, _ = slow_release(kind)
    world.run(299)
    assert (world.image, world.state()) == ("v2", RUNNING)
    assert "ReleaseStalled" not in world.reasons
    world.run(1)
    assert is_restored(world)
    assert "is not up after 300 s (its probes allow 300 s): " in world.message(ROLLED_BACK, "v2")


def test_release_that_needs_longer_than_the_start_timeout_and_is_allowed_to_is_not_undone(kind: str) -> None:
    world, pod = slow_release(kind)
    world.run(150)
    world.up(pod)
    world.run(20)
    assert (world.image, world.state()) == ("v2", RUNNING)
    assert "RollbackStarted" not in world.reasons


def test_new_leader_grants_the_same_time() -> None:
    for dies_at in (100, 200):
        world, _ = slow_release()
        world.run(dies_at)
        world.die()
        world.run(299 - dies_at)
        assert world.image == "v2"
        world.run(1)
        assert is_restored(world)


@pytest.mark.parametrize("skew", [-250.0, 250.0])
def test_clock_of_the_kubelet_does_not_change_the_time(skew: float) -> None:
    world, pod = slow_release()
    world.kubelet = skew
    pod.started_at = pod.born + 40
    world.touch(pod)
    assert_rolled_back_after(world, 340)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [(SimPod.wait_for_image, "ImagePullBackOff"), (SimPod.misconfigure, "CreateContainerConfigError")],
)
def test_budget_does_not_count_while_the_container_does_not_run(spoil: Any, name: str) -> None:
    world, pod = slow_release()
    world.touch(spoil(pod))
    assert_rolled_back_after(world, 120)


def test_budget_does_not_count_after_a_crash() -> None:
    world, pod = slow_release()
    world.run(60)
    world.touch(pod.crash(world.t))
    world.run(20)
    pod.waiting = None
    world.touch(pod)
    assert_rolled_back_after(world, 40)


def test_pod_that_crashes_in_its_budget_after_the_start_timeout_is_overdue() -> None:
    world, pod = slow_release()
    world.run(200)
    world.touch(pod.crash(world.t))
    world.run(0)
    assert is_restored(world)


def test_budget_does_not_count_for_a_pod_that_was_up() -> None:
    world, pod = slow_release()
    world.up(pod)
    world.run(20)
    world.touch(pod.lose_readiness(world.t))
    assert_rolled_back_after(world, 120)


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        ({"max_start_seconds": 200}, 200),
        ({"max_start_seconds": 60}, 120),
        ({"start_timeout_seconds": 60}, 300),
        ({"start_timeout_seconds": 400}, 400),
        ({"start_timeout_seconds": 400, "max_start_seconds": 350}, 400),
    ],
    ids=str,
)
def test_longer_one_of_start_timeout_and_budget_counts_and_the_cap_limits_the_budget(
    policy: dict[str, int], seconds: int
) -> None:
    world = serving("Deployment", 3)
    world.container, world.policy = SLOW, AppliedPolicy(name="p", **policy)  # type: ignore[arg-type]
    world.begin("v2")
    world.make(1)
    world.run(seconds - 1)
    assert world.image == "v2"
    world.run(1)
    assert is_restored(world)


@pytest.mark.parametrize(
    ("container", "seconds"),
    [
        ({}, 120),
        ({"startupProbe": {}}, 120),
        ({"startupProbe": {"initialDelaySeconds": 100, "periodSeconds": 5, "failureThreshold": 20}}, 200),
        ({"readinessProbe": {"initialDelaySeconds": 200}}, 210),
        ({"readinessProbe": {"initialDelaySeconds": 200, "periodSeconds": 5, "successThreshold": 4}}, 220),
        ({**SLOW, "readinessProbe": {"initialDelaySeconds": 20, "periodSeconds": 7}}, 307),
        ({**SLOW, "readinessProbe": {"initialDelaySeconds": 400, "periodSeconds": 7}}, 407),
        ({"startupProbe": {"failureThreshold": 1000}}, 1800),
        ({"startupProbe": {"failureThreshold": "wrong"}}, 120),
    ],
    ids=str,
)
def test_budget_of_probes(container: Any, seconds: int) -> None:
    world, _ = slow_release(container=container)
    world.run(seconds - 1)
    assert world.image == "v2"
    world.run(1)
    assert is_restored(world)


def test_init_container_that_runs_for_the_first_time_has_the_progress_deadline(kind: str) -> None:
    world, pod = slow_release(kind, {})
    pod.init_until = 900.0
    world.touch(pod)
    assert_rolled_back_after(world, 600)
    assert "(its init container init may take 600 s)" in world.message(ROLLED_BACK, "v2")


def test_deployment_sets_the_progress_deadline() -> None:
    world, pod = slow_release(container={})
    world.progress_deadline = 200
    pod.init_until = 900.0
    world.touch(pod)
    assert_rolled_back_after(world, 200)


def test_start_timeout_begins_when_the_init_containers_have_completed(kind: str) -> None:
    world, pod = slow_release(kind, {})
    pod.init_until = 150.0
    world.touch(pod)
    world.run(150)
    world.touch(pod)
    for leader in range(2):
        world.run(50)
        assert (world.image, world.state()) == ("v2", RUNNING), leader
        world.die()
    assert_rolled_back_after(world, 20)


def test_init_container_that_crashed_has_no_budget() -> None:
    world, pod = slow_release(container={})
    pod.init_until, pod.init_restarts = 900.0, 1
    world.touch(pod)
    assert_rolled_back_after(world, 120)


def test_release_whose_pods_are_in_their_budget_is_not_stalled() -> None:
    world, _ = slow_release(container={"startupProbe": {"failureThreshold": 90}})
    world.run(890)
    assert world.state() == RUNNING
    assert world.condition(STALLED) is None


def test_pod_updated_in_place_has_the_budget_too() -> None:
    world = serving("CloneSet", 3)
    world.container = SLOW
    world.begin("v2")
    pod, *_ = world.of("v1")
    world.run(500)
    world.update_in_place(pod)
    pod.started_at, pod.waiting = world.t, None
    world.touch(pod)
    assert_rolled_back_after(world, 300)


def test_min_ready_seconds_give_no_time_to_a_pod_that_was_never_ready() -> None:
    world, _ = slow_release(container={})
    world.min_ready = 300
    assert_rolled_back_after(world, 120)


BUDGET = StartBudget(300, (("proxy", 200),), 600)


@pytest.mark.parametrize(
    ("starting", "seconds"),
    [
        (None, 120),
        (Starting(0, 30), 330),
        (Starting(200, None), 320),
        (Starting(200, 30), 330),
        (Starting(0, 30, restarted=True), 120),
        (Starting(200, 230, restarted=True), 320),
        (Starting(0, 30, "migrate"), 630),
        (Starting(50, 70, "migrate"), 670),
        (Starting(0, 30, "proxy"), 230),
        (Starting(900, None, "migrate"), 1000),
        (Starting(0, 950, "migrate"), 1000),
    ],
    ids=str,
)
def test_limit_of_a_pod_that_starts(starting: Starting | None, seconds: int) -> None:
    assert limit(starting, BUDGET, 120, 1000, 0).seconds == seconds
    assert limit(starting, StartBudget(0, (), 0), 2000, 1000, 0).seconds >= 2000, "a longer start timeout counts"


@pytest.mark.parametrize(("restarts", "restarted"), [(0, False), (1, False), (2, True)])
def test_update_in_place_restarts_a_container_once(restarts: int, restarted: bool) -> None:
    found = updated_in_place(Starting(50, 9000, restarted=True), restarts=restarts)
    assert found == Starting(0, 0, restarted=restarted)
    assert updated_in_place(Starting(50, None), restarts=restarts).running_since is None


def test_restart_begins_nothing_anew_while_only_min_ready_seconds_keep_the_pod_from_being_up() -> None:
    world = serving("Deployment", 3)
    world.policy = AppliedPolicy(name="p", start_timeout_seconds=60)
    world.min_ready = 30
    world.begin("v2")
    (pod,) = world.make(1)
    while not is_over(world, "v2"):
        world.up(pod)
        world.run(20)
        world.touch(pod.crash(world.t))
        world.run(3)
    assert world.t - pod.born <= 75


def test_restart_of_its_node_begins_the_time_of_a_slow_pod_anew() -> None:
    world, (pod,) = second_release("Deployment", replicas=1)
    world.container = SLOW
    world.rest()
    pod.node = "node-2"
    world.run(200)
    world.up(pod)
    world.remove(*world.of("v1"))
    world.run(20)
    world.touch(pod.lose_readiness(world.t))
    world.lose_node("node-2")
    world.run(90)
    world.find_node("node-2")
    pod.restarts, pod.started_at, pod.ended_with, pod.ended_at = 1, world.t, ("Unknown", 255), world.t
    world.touch(pod)
    world.run(250)
    assert (world.image, world.state(), world.suspended) == ("v2", SUCCESS, False)
    world.up(pod)
    world.run(30)
    assert world.state() == SUCCESS


def test_crash_of_a_slow_pod_that_was_up_has_the_start_timeout() -> None:
    world, (pod,) = second_release("Deployment", replicas=1)
    world.container = SLOW
    world.up(pod)
    world.remove(*world.of("v1"))
    world.run(20)
    assert world.state() == SUCCESS
    world.touch(pod.crash(world.t))
    world.run(130)
    assert world.state() != SUCCESS
