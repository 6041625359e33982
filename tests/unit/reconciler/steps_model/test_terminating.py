"""Pods that are terminating and do not end, on the simulated cluster."""

from altershield.api.change_workload import WorkloadState
from altershield.api.rollout import Phase, Rollout, Step

from .cluster import Cluster, spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 120), Step("50%", 0)), step_deadline_seconds=600)


def begun(kind: str, replicas: int) -> Cluster:
    """The second version is held at its first step, with one pod."""
    own = spec_of(kind, 0, 2, 0, parallel=False)
    world = with_second_version(kind, own, replicas=replicas, rollout=ROLLOUT, observe=1, seconds=60.0)
    assert len(world.of("good-2")) == 1
    return world


def test_old_pod_of_a_node_that_leaves_stands_in_the_way_of_nothing() -> None:
    world = begun("DaemonSet", 6)
    old = next(pod for pod in world.pods.values() if pod.image == "good-1")
    world.nodes.remove(old.node)
    world.replicas = len(world.nodes)
    world.kept.add(old.uid)
    world.terminate(old)
    world.go_on(3000.0)
    assert old.uid in world.pods
    assert world.state() == WorkloadState.SUCCESS


def test_pod_in_a_place_of_the_step_is_awaited_until_the_release_fails() -> None:
    world = begun("StatefulSet", 4)
    world.kept |= {pod.uid for pod in world.of("good-1")}
    world.go_on(2000.0)
    status = world.steps_status
    assert (status.step, status.waiting_for, world.state()) == (2, ("termination",), WorkloadState.RUNNING)
    world.judge(world.of("good-2")[0], "unpass")
    world.go_on(20.0)
    status = world.steps_status
    assert (status.phase, status.waiting_for, world.state()) == (Phase.STOPPED, (), WorkloadState.SUSPEND)
