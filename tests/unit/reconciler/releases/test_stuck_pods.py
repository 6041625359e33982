"""Pods of older versions for which an ordered controller waits without end: which are deleted, and which are not."""

from collections.abc import Callable

import pytest

from altershield.api import labels
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy, Mode, OnFailure

from .scenarios import FAILED, ROLLBACK, RUNNING, STALLED, SUCCESS, SUSPEND, first_release_up, release_bad, serving
from .world import SimPod, World

KIND = "StatefulSet"


def superseded(after: float = 6) -> tuple[World, SimPod]:
    """v1 passed. A pod of v2 does not come up, and the fix v3 is released some seconds after v2."""
    world = serving(KIND, 3)
    bad = release_bad(world, "v2")
    world.remove(next(pod for pod in world.of("v1") if pod.name == bad.name))
    world.run(after)
    world.begin("v3")
    return world, bad


def is_deleted(world: World, pod: SimPod) -> bool:
    return pod.uid not in world.pods


def crash_again(world: World, pod: SimPod, times: int, gap: float = 10) -> None:
    """The container is ready for a moment after each start."""
    for _ in range(times):
        world.up(pod)
        world.run(1)
        world.touch(pod.crash(world.t))
        world.run(gap)


def test_broken_pod_of_a_first_release_is_deleted_when_the_repair_is_released() -> None:
    world = World(KIND)
    bad = release_bad(world, "v1")
    world.run(125)
    assert world.state() == SUSPEND
    world.begin_repair("v2")
    assert is_deleted(world, bad)
    world.make_up(3)
    world.run(30)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_broken_pod_of_a_version_that_was_superseded_is_deleted_after_the_start_timeout() -> None:
    world, bad = superseded()
    world.run(110)
    assert not is_deleted(world, bad)
    world.run(10)
    assert is_deleted(world, bad)


def test_stalled_release_names_the_pod_that_its_controller_waits_for() -> None:
    world, _ = superseded()
    world.settings = Settings(rollback=False)
    world.run(1000)
    found = world.condition(STALLED)
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodsMissing")
    assert (
        "; StatefulSet web waits for pod web-0 of an older version; to see what to do: altershield why "
        in found.message
    )


def test_broken_pod_is_deleted_after_an_undo() -> None:
    world = serving(KIND, 3)
    bad = release_bad(world, "v2")
    world.remove(next(pod for pod in world.of("v1") if pod.name == bad.name))
    world.run(60)
    world.begin("v1")
    world.run(65)
    assert is_deleted(world, bad)
    world.make_up(1)
    world.run(30)
    assert world.state() == SUCCESS


def test_broken_pods_of_two_bad_versions_are_deleted_one_after_the_other() -> None:
    world, first = superseded()
    world.run(120)
    assert is_deleted(world, first)
    (second,) = world.make(1)
    world.touch(second.wait_for_image())
    world.run(6)
    world.begin("v4")
    world.run(120)
    assert is_deleted(world, second)
    assert len(world.of("v1")) == 2


def test_broken_pod_of_a_superseded_version_is_deleted_after_a_rollback_of_the_fix() -> None:
    world, bad = superseded()
    world.ask_rollback("web-v1")
    world.rest()
    assert world.image == "v1"
    world.run(120)
    assert is_deleted(world, bad)


@pytest.mark.parametrize("state", [SUCCESS, SUSPEND, FAILED])
def test_broken_pod_is_deleted_in_every_state_of_the_present_release(state: str) -> None:
    world, bad = superseded()
    world.edit_status(status=state)
    world.run(120)
    assert world.state() == state
    assert is_deleted(world, bad)


def test_broken_pod_stays_while_the_present_version_is_about_to_be_replaced() -> None:
    world, bad = superseded()
    world.write_refused = "denied by policy"
    world.ask_rollback("web-v1")
    world.run(300)
    assert (world.state(), is_deleted(world, bad)) == (ROLLBACK, False)


def test_broken_pod_is_deleted_without_a_change_workload_of_its_version() -> None:
    world, bad = superseded()
    for image in ("v1", "v2"):
        del world.releases[world._version_in(image)]
    world.run(120)
    assert is_deleted(world, bad)


@pytest.mark.parametrize("seconds", [6, 100, 130])
def test_pod_that_was_never_ready_is_deleted_after_a_change_of_the_leader(seconds: float) -> None:
    world, bad = superseded(after=6)
    world.advance(seconds)
    world.die()
    world.run(120 - min(seconds, 119))
    assert is_deleted(world, bad)


def test_pod_that_is_ready_between_crashes_is_deleted_if_this_leader_saw_all_of_them() -> None:
    world = serving(KIND, 3)
    bad = release_bad(world, "v2")
    crash_again(world, bad, 3)
    world.begin("v3")
    crash_again(world, bad, 6)
    assert not is_deleted(world, bad)
    crash_again(world, bad, 4)
    world.run(30)
    assert is_deleted(world, bad)


def test_pod_that_was_ready_before_a_change_of_the_leader_stays() -> None:
    """Nobody knows for how long it was ready."""
    world = serving(KIND, 3)
    bad = release_bad(world, "v2")
    crash_again(world, bad, 3)
    world.begin("v3")
    world.die()
    crash_again(world, bad, 30)
    world.run(1000)
    assert not is_deleted(world, bad)


def test_pod_that_failed_because_it_did_not_come_up_is_deleted_after_a_change_of_the_leader() -> None:
    world = World(KIND)
    bad = release_bad(world, "v1")
    crash_again(world, bad, 14)
    world.run(130)
    assert world.state() == SUSPEND
    world.own_labels[labels.IGNORED_SUSPEND] = "true"
    world.release("v2")
    world.die()
    world.rest()
    crash_again(world, bad, 3)
    assert not is_deleted(world, bad)
    world.run(120)
    assert is_deleted(world, bad)


def test_pod_that_came_up_late_after_it_had_failed_stays() -> None:
    world = World(KIND)
    bad = release_bad(world, "v1")
    world.run(125)
    assert world.state() == SUSPEND
    world.up(bad)
    world.run(30)
    assert labels.OPERATE_FINISHED in bad.pod_labels
    world.begin_repair("v2")
    world.touch(bad.lose_readiness(world.t))
    world.run(1000)
    assert not is_deleted(world, bad)


def test_pod_that_failed_after_it_had_passed_stays_because_of_its_first_change_pod() -> None:
    world, (pod,) = first_release_up(KIND, replicas=1, count=1)
    world.run(20)
    world.touch(pod.crash(world.t))
    world.run(125)
    assert world.state() == SUSPEND
    pod.pod_labels.pop(labels.OPERATE_FINISHED)
    world.begin_repair("v2")
    world.run(1000)
    assert not is_deleted(world, pod)


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
def test_pod_that_was_up_before_stays_however_long_it_is_not_ready(leads: bool, labelled: bool) -> None:
    """The label is gone, or the ChangeWorkload with its ChangePods."""
    world = serving(KIND, 3)
    world.begin("v2")
    pod = world.of("v1")[0]
    if not labelled:
        pod.pod_labels.pop(labels.OPERATE_FINISHED)
    else:
        world.batches.clear()
    if not leads:
        world.die()
    world.touch(pod.lose_readiness(world.t))
    world.run(1000)
    assert not is_deleted(world, pod)


def test_pod_from_before_altershield_stays() -> None:
    """It has neither a label nor a ChangePod. Its kubelet's times say that it was ready."""
    world = World(KIND)
    world.release("v0")
    old = world.make(3)
    world.advance(60)
    world.up(*old)
    world.advance(1000)
    world.begin("v1")
    world.touch(old[0].lose_readiness(world.t))
    world.run(1000)
    assert not is_deleted(world, old[0])


def test_pod_that_comes_up_after_its_version_was_superseded_stays() -> None:
    world, slow = superseded()
    world.run(60)
    world.up(slow)
    world.run(30)
    world.touch(slow.lose_readiness(world.t))
    world.run(1000)
    assert not is_deleted(world, slow)


def without_rollback(world: World) -> None:
    world.settings = Settings(rollback=False)


def with_on_delete(world: World) -> None:
    world.rolling = False


def with_other_revision_in_the_partition(world: World) -> None:
    world.partition, world.current_revision = 3, "web-v2"


def with_fewer_replicas(world: World) -> None:
    world.replicas = 0


def with_old_status(world: World) -> None:
    world.observed = False


@pytest.mark.parametrize(
    "change",
    [
        without_rollback,
        with_on_delete,
        with_other_revision_in_the_partition,
        with_fewer_replicas,
        with_old_status,
    ],
)
def test_broken_pod_stays(change: Callable[[World], None]) -> None:
    world, bad = superseded()
    change(world)
    world.run(1000)
    assert not is_deleted(world, bad)


def test_broken_pod_stays_while_altershield_pauses_the_rollout() -> None:
    world = serving(KIND, 3)
    bad = release_bad(world, "v2")
    world.policy = AppliedPolicy(namespace="shop", name="web", on_failure=OnFailure.PAUSE)
    world.begin("v3")
    (pod,) = world.make_up(1)
    world.run(15)
    assert world.judge(pod, "unpass")
    world.run(1000)
    assert (world.held, is_deleted(world, bad)) == (True, False)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_broken_pod_stays_if_the_policy_only_observes(mode: Mode) -> None:
    world = serving(KIND, 3)
    world.policy = AppliedPolicy(namespace="shop", name="web", mode=mode)
    bad = release_bad(world, "v2")
    world.begin("v3")
    world.run(1000)
    assert not is_deleted(world, bad)


def test_broken_pod_that_the_partition_replaces_by_the_version_before_is_deleted() -> None:
    world, bad = superseded()
    world.partition, world.current_revision = 3, "web-v1"
    world.run(120)
    assert is_deleted(world, bad)


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "CloneSet"])
def test_other_kinds_replace_broken_pods_themselves(kind: str) -> None:
    world = serving(kind, 3)
    bad = release_bad(world, "v2")
    world.begin("v3")
    world.run(1000)
    assert not is_deleted(world, bad)


def test_pod_without_a_node_is_deleted_because_it_never_ran() -> None:
    """The first release asked for more than any node has."""
    world, bad = superseded()
    world.touch(bad.find_no_node())
    world.run(120)
    assert is_deleted(world, bad)


def test_pod_on_a_lost_node_stays_until_the_node_is_back() -> None:
    world, bad = superseded()
    bad.node = "node-2"
    world.lose_node("node-2")
    world.run(1000)
    assert not is_deleted(world, bad)
    assert world.state() == RUNNING


def test_policy_of_an_older_release_with_a_longer_start_timeout_counts() -> None:
    world = serving(KIND, 3)
    world.policy = AppliedPolicy(namespace="shop", name="slow", start_timeout_seconds=600)
    bad = release_bad(world, "v2")
    world.policy = AppliedPolicy()
    world.begin("v3")
    world.run(500)
    assert not is_deleted(world, bad)
    world.run(110)
    assert is_deleted(world, bad)


def starts_slowly(seconds: int, policy: AppliedPolicy) -> tuple[World, SimPod]:
    """The container of a pod of v2 runs, and its startup probe has not passed. After 60 s, v3 is released, without a
    probe."""
    world = serving(KIND, 3)
    world.policy = policy
    world.container = {"startupProbe": {"periodSeconds": 10, "failureThreshold": seconds // 10}}
    world.begin("v2")
    (pod,) = world.make(1)
    world.remove(next(each for each in world.of("v1") if each.name == pod.name))
    world.run(60)
    world.container = {}
    world.begin("v3")
    return world, pod


@pytest.mark.parametrize(
    ("allowed", "max_start", "deleted_after"), [(900, 1800, 900), (3000, 1800, 1800), (3000, 3600, 3000)]
)
def test_slow_pod_has_the_time_that_its_own_template_and_policy_allow(
    allowed: int, max_start: int, deleted_after: int
) -> None:
    policy = AppliedPolicy(namespace="shop", name="slow", max_start_seconds=max_start)
    world, slow = starts_slowly(allowed, policy)
    world.run(deleted_after - 60 - 10)
    assert not is_deleted(world, slow)
    world.run(20)
    assert is_deleted(world, slow)


def test_slow_pod_has_no_more_time_after_its_container_crashed() -> None:
    world, slow = starts_slowly(900, AppliedPolicy())
    world.touch(slow.crash(world.t))
    world.run(70)
    assert is_deleted(world, slow)


def test_pod_that_waits_for_a_volume_is_deleted_because_it_never_ran() -> None:
    """Its own version may ask for a volume that does not exist."""
    world, bad = superseded()
    bad.waiting = None
    world.touch(bad.be_created())
    world.run(120)
    assert is_deleted(world, bad)
