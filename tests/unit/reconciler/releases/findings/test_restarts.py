"""Pods that come up after each restart, of a release that has not settled."""

import msgspec
import pytest

from altershield.api.change_workload import MAX_RESTARTED, Settling
from altershield.api.condition_types import Giver
from altershield.api.meta import find_condition
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy
from altershield.workloads.pods import Pod
from reconciler.releases.findings.restarts import restarts_before
from reconciler.releases.terms.rules import Settle
from tests.unit.reconciler.releases.scenarios import (
    FAILED,
    ROLLBACK,
    ROLLED_BACK,
    SETTLED,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    is_restored,
)
from tests.unit.reconciler.releases.world import SimPod, World, fingerprint

HOUR = 3600
POLICY = AppliedPolicy(name="web", namespace="default", settle_seconds=HOUR)
EVERY = 600
"""Seconds between two restarts. A pod comes up in between."""


def successful(kind: str = "Deployment", replicas: int = 3, policy: AppliedPolicy = POLICY) -> World:
    """A first release that has just succeeded."""
    world = World(kind, replicas=replicas)
    world.policy = policy
    world.begin("v1")
    world.make_up(replicas)
    world.run(10)
    assert world.state() == SUCCESS
    return world


def with_restarts(number: int) -> AppliedPolicy:
    return msgspec.structs.replace(POLICY, settle_restarts=number)


def restart(world: World, *pods: SimPod, times: int = 1, reason: str = "Error", code: int = 3) -> None:
    """The containers of these pods end, and are ready again in the same second."""
    for _ in range(times):
        world.run(EVERY)
        for pod in pods:
            pod.restart(world.t, reason, code)
        world.touch(*pods)
        world.rest()


# the third restart


def test_third_restart_before_the_release_settles_suspends_it_although_its_pod_comes_up_each_time(kind: str) -> None:
    world = successful(kind)
    pod = world.of("v1")[0]
    restart(world, pod, times=2)
    world.run(EVERY - 1)
    assert world.state() == SUCCESS
    restart(world, pod)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    (failed,) = world.status().defense_check_fail_pods
    assert failed.uid == pod.uid
    assert failed.message == "container main restarted 3 times in 2399 s: Error (exit code 3)"
    assert world.status().settling == Settling()


@pytest.mark.parametrize("start_timeout", [20, 120])
def test_pod_that_crashes_each_minute_fails_the_release(start_timeout: float) -> None:
    """A kubelet restarts the container later each time."""
    world = World("Deployment", replicas=1, start_timeout=start_timeout)
    world.policy = msgspec.structs.replace(POLICY, settle_seconds=300)
    world.begin("v1")
    (pod,) = world.make_up(1)
    for back_off in (1, 10, 20):
        world.run(60)
        assert world.state() == SUCCESS
        world.touch(pod.crash(world.t))
        world.run(back_off)
        world.up(pod)
    world.rest()
    assert world.state() == SUSPEND


def second_success(kind: str = "Deployment", policy: AppliedPolicy = POLICY) -> tuple[World, list[SimPod]]:
    """A release that has just succeeded, and its pods. One older pod serves again."""
    world = successful(kind, policy=policy)
    old = world.of("v1")
    world.begin("v2")
    pods = world.make_up(3)
    world.remove(*old)
    world.run(10)
    assert world.state("v2") == SUCCESS
    world.make_up(1, "v1")
    return world, pods


def test_third_restart_rolls_the_release_back_while_older_pods_serve(kind: str) -> None:
    world, pods = second_success(kind)
    restart(world, pods[0], times=3)
    assert is_restored(world)
    assert world.state("v2") == FAILED
    condition = find_condition(world.status("v2").conditions, ROLLED_BACK)
    assert condition is not None
    assert f"pod {pods[0].name}: container main restarted 3 times in" in condition.message


def test_rollback_because_of_restarts_is_not_withdrawn_when_they_do_not_count_any_more() -> None:
    """The API server refuses the write until then."""
    world, pods = second_success(policy=msgspec.structs.replace(POLICY, settle_seconds=EVERY + 60))
    restart(world, pods[0], times=2)
    world.write_refused = "a policy"
    restart(world, pods[0])
    world.run(EVERY)
    assert world.state("v2") == ROLLBACK
    world.write_refused = ""
    world.run(10)
    assert is_restored(world)


def test_approval_of_a_rollback_because_of_restarts_passes_the_pod() -> None:
    world, pods = second_success()
    world.write_refused = "a policy"
    restart(world, pods[0], times=3)
    assert world.state("v2") == ROLLBACK
    world.request("Approve")
    world.run(130)
    assert (world.state("v2"), world.suspended) == (SUCCESS, False)
    restart(world, pods[0], times=4)
    assert world.state("v2") == SUCCESS


def test_number_of_restarts_of_the_policy_counts() -> None:
    world = successful(policy=with_restarts(5))
    pod = world.of("v1")[0]
    restart(world, pod, times=4)
    assert world.state() == SUCCESS
    restart(world, pod)
    assert world.state() == SUSPEND


@pytest.mark.parametrize("dies", ["after each restart", "before each restart", "always"])
def test_new_leader_comes_to_the_same_decision(dies: str) -> None:
    world = successful()
    pod = world.of("v1")[0]
    for expected in (SUCCESS, SUCCESS, SUSPEND):
        world.run(EVERY)
        if dies != "after each restart":
            world.die()
        pod.restart(world.t, "Error", 3)
        if dies == "always":
            world.advance(60)
        world.touch(pod)
        world.rest()
        if dies != "before each restart":
            world.die()
            world.rest()
        assert world.state() == expected
    (failed,) = world.status().defense_check_fail_pods
    assert failed.message.startswith("container main restarted 3 times in")


@pytest.mark.parametrize("dies", [False, True])
def test_restarts_of_all_containers_count_together(dies: bool) -> None:
    world = successful()
    pod = world.of("v1")[0]
    restart(world, pod)
    world.run(EVERY)
    pod.sidecar = (1, world.t)
    world.touch(pod.come_up(world.t))
    world.rest()
    if dies:
        world.die()
    assert world.state() == SUCCESS
    restart(world, pod)
    (failed,) = world.status().defense_check_fail_pods
    assert failed.message == "containers main, mesh restarted 3 times in 1800 s: Error (exit code 3)"


@pytest.mark.parametrize("apart", [0, 30])
def test_containers_that_end_together_count_as_one_restart(apart: float) -> None:
    """The kubelet starts the whole pod again."""
    world = successful()
    pod = world.of("v1")[0]
    for number, expected in enumerate((SUCCESS, SUCCESS, SUSPEND), start=1):
        world.run(EVERY)
        pod.sidecar = (number, world.t - apart)
        world.touch(pod.restart(world.t))
        world.rest()
        assert world.state() == expected


def test_containers_that_end_one_after_the_other_count_separately() -> None:
    world = successful()
    pod = world.of("v1")[0]
    restart(world, pod)
    world.run(EVERY)
    pod.sidecar = (1, world.t - 31)
    world.touch(pod.restart(world.t))
    world.rest()
    assert world.state() == SUSPEND


def test_containers_whose_ends_are_not_known_count_separately() -> None:
    world = successful()
    pod = world.of("v1")[0]
    pod.restarts, pod.ended_with, pod.sidecar = 2, ("Error", 1), (1, 0.0)
    world.touch(pod.come_up(world.t))
    world.rest()
    assert world.state() == SUSPEND


# restarts that do not count


def test_restarts_before_the_success_do_not_count(kind: str) -> None:
    world = World(kind)
    world.policy = POLICY
    world.begin("v1")
    pods = world.make(3)
    for pod in pods:
        pod.restarts, pod.ended_with, pod.ended_at = 7, ("Error", 1), world.t
    world.up(*pods)
    world.run(200)
    assert world.state() == SUCCESS
    restart(world, pods[0], times=2)
    world.die()
    world.rest()
    assert world.state() == SUCCESS
    restart(world, pods[0])
    assert world.state() == SUSPEND


def test_restarts_of_pods_that_were_updated_in_place_count_from_the_success_on() -> None:
    world = successful("CloneSet")
    pods = world.of("v1")
    restart(world, *pods, times=2)
    world.run(1000 * HOUR)
    world.begin("v2")
    for pod in pods:
        world.update_in_place(pod)
    world.up(*pods)
    world.run(200)
    assert world.state() == SUCCESS
    restart(world, pods[0], times=2)
    assert world.state() == SUCCESS
    restart(world, pods[0])
    assert world.state() == SUSPEND


@pytest.mark.parametrize("dies", [False, True])
def test_restarts_of_a_new_pod_count_after_it_was_verified(dies: bool) -> None:
    world = successful()
    world.scale(4)
    (pod,) = world.make(1)
    for _ in range(5):
        world.run(5)
        world.touch(pod.crash(world.t))
    world.up(pod)
    world.run(130)
    assert world.state() == SUCCESS
    for expected in (SUCCESS, SUCCESS, SUSPEND):
        if dies:
            world.die()
        restart(world, pod)
        assert world.state() == expected


def reboot(world: World, pod: SimPod, evidence: str) -> None:
    """The pod's node restarts, and with it the container. The node has no other pod."""
    world.run(EVERY)
    pod.node = "node-9"
    if evidence == "node":
        pod.lose_readiness(world.t)
        world.lose_node("node-9")
        world.run(60)
        world.find_node("node-9")
        pod.restart(world.t - 60, "Error", 143)
        world.up(pod)
    elif evidence == "node is not ready":
        world.lose_node("node-9")
        pod.restart(world.t, "Error", 143)
        world.touch(pod)
        world.rest()
        world.find_node("node-9")
    else:
        pod.restart(world.t, evidence, 255)
        world.touch(pod)
    world.rest()


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("evidence", ["Unknown", "ContainerStatusUnknown", "node", "node is not ready"])
def test_restart_with_its_node_does_not_count(evidence: str, dies: bool) -> None:
    world = successful()
    pod = world.of("v1")[0]
    for _ in range(4):
        reboot(world, pod, evidence)
        assert world.state() == SUCCESS
        if dies:
            world.die()
    restart(world, pod, times=2)
    if dies:
        world.die()
        world.rest()
    assert world.state() == SUCCESS
    restart(world, pod)
    assert world.state() == SUSPEND
    (failed,) = world.status().defense_check_fail_pods
    assert failed.message.startswith("container main restarted 3 times in")


def test_restarts_with_nodes_are_kept_as_long_as_their_pods_exist() -> None:
    world = successful()
    first, second, third = world.of("v1")
    restart(world, second, times=2)
    restart(world, first, reason="Unknown")
    restart(world, second, reason="Unknown")
    assert [(each.uid, each.uncounted, each.seen) for each in world.status().settling.pods] == [
        (first.uid, 1, 1),
        (second.uid, 1, 3),
    ]
    assert [(each.uid, each.restarts) for each in world.status().settling.restarting] == [(second.uid, 2)]
    world.remove(first)
    restart(world, third, reason="Unknown")
    assert [each.uid for each in world.status().settling.pods] == [second.uid, third.uid]


def test_restart_long_before_the_node_was_lost_counts() -> None:
    world = successful()
    pod = world.of("v1")[0]
    restart(world, pod)
    world.run(EVERY + 10)
    pod.node = "node-9"
    world.lose_node("node-9")
    world.run(10)
    world.find_node("node-9")
    restart(world, pod, times=2)
    assert world.state() == SUSPEND


def test_restarts_after_the_time_in_which_they_count_do_not_fail_the_release() -> None:
    """A pod that is overdue keeps the release from settling."""
    world = successful(replicas=10)
    pods = world.of("v1")
    world.touch(pods[1].lose_readiness(world.t))
    restart(world, pods[0], times=2)
    world.run(3 * HOUR)
    restart(world, pods[0], times=5)
    assert (world.state(), world.said(SETTLED)) == (SUCCESS, ("False", "PodsDown"))


def test_pod_that_a_person_passed_does_not_fail_again_because_of_restarts(kind: str) -> None:
    world = successful(kind)
    pods = world.of("v1")
    restart(world, pods[0], times=3)
    assert world.state() == SUSPEND
    world.judge(pods[0], "pass")
    world.run(130)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    restart(world, pods[0], times=5)
    assert world.state() == SUCCESS
    restart(world, pods[1], times=2)
    assert world.state() == SUCCESS
    restart(world, pods[1])
    assert world.state() == SUSPEND


def test_restarts_count_from_now_on_if_the_release_succeeded_before_they_were_counted() -> None:
    world = successful()
    pod = world.of("v1")[0]
    restart(world, pod, times=2)
    stored = world.releases[world.version]
    world.releases[world.version] = msgspec.structs.replace(
        stored, status=msgspec.structs.replace(stored.status, settling=Settling())
    )
    restart(world, pod, times=2)
    assert world.state() == SUCCESS
    restart(world, pod)
    assert world.state() == SUSPEND


# how many pods


def test_too_few_pods_that_restart_do_not_end_the_release() -> None:
    world = successful(replicas=10)
    pods = world.of("v1")
    restart(world, pods[0], times=3)
    assert world.state() == SUCCESS
    assert world.said(STALLED) == ("True", "PodsOverdue")
    condition = find_condition(world.status().conditions, STALLED)
    assert condition is not None
    assert condition.message.startswith(
        f"1 of 10 pods are restarting again and again, too few to end the release: pod {pods[0].name}: container main "
        "restarted 3 times in"
    )
    restart(world, pods[0], times=2)
    restart(world, pods[1], times=3)
    assert world.state() == SUSPEND
    assert {each.uid for each in world.status().defense_check_fail_pods} == {pods[0].uid, pods[1].uid}


def test_single_restarts_of_many_pods_do_not_end_the_release() -> None:
    world = successful(replicas=10)
    for pod in world.of("v1"):
        restart(world, pod, times=2)
    assert world.state() == SUCCESS


def test_overdue_pods_and_pods_that_restart_end_the_release_together() -> None:
    world = successful(replicas=10)
    pods = world.of("v1")
    restart(world, pods[0], times=3)
    world.run(60)
    world.touch(pods[1].lose_readiness(world.t))
    world.run(119)
    assert world.state() == SUCCESS
    world.run(2)
    assert world.state() == SUSPEND
    said = {each.uid: each.message for each in world.status().defense_check_fail_pods}
    assert said[pods[0].uid].startswith("container main restarted 3 times")
    assert said[pods[1].uid].startswith("not up any more")


def test_more_pods_than_the_status_lists_restarted_before_the_success() -> None:
    count = MAX_RESTARTED + 50
    world = World("Deployment", replicas=count)
    world.policy = POLICY
    world.begin("v1")
    pods = world.make(count)
    for number, pod in enumerate(pods):
        pod.restarts, pod.ended_with = 1 + number % 5, ("Error", 1)
    world.up(*pods)
    world.run(200)
    assert world.state() == SUCCESS
    assert (len(world.status().settling.pods), world.status().settling.others) == (MAX_RESTARTED, 1)
    restart(world, pods[0], reason="Unknown")  # a node restarted a pod that is not listed
    assert (len(world.status().settling.pods), world.status().settling.others) == (MAX_RESTARTED, 2)
    few = pods[: count // 5 - 1]
    restart(world, *few, times=5)
    assert world.state() == SUCCESS
    restart(world, *pods[: count // 5], times=3)
    assert world.state() == SUSPEND


# settling


def test_restart_delays_settling_and_the_condition_says_which_pod_restarts() -> None:
    world = successful()
    pods = world.of("v1")
    began = world.status().settling.since_unix
    restart(world, pods[1], times=2)
    condition = find_condition(world.status().conditions, SETTLED)
    assert condition is not None
    assert condition.reason == "PodsDown"
    world.run(60)
    condition = find_condition(world.status().conditions, SETTLED)
    assert condition is not None
    assert condition.reason == "PodsRestarted"
    assert condition.message.startswith(
        "all pods are up; pod web-2: container main restarted 2 times in 1200 s: Error (exit code 3); a pod with 3 "
        "restarts fails; the release settles at "
    )
    (listed,) = world.status().settling.restarting
    assert (listed.uid, listed.restarts) == (pods[1].uid, 2)
    world.run(began + HOUR + 2 * EVERY - world.t - 1)
    assert world.said(SETTLED)[0] == "False"
    world.run(EVERY)
    assert world.said(SETTLED) == ("True", "StayedUp")
    assert world.status().settling == Settling()


def test_release_whose_pods_always_restart_settles_although_the_settle_time_is_never_quiet() -> None:
    """Few of many pods restart, and no pod often enough. The release is not watched forever."""
    world = successful(replicas=100)
    began, pods = world.status().settling.since_unix, world.of("v1")
    for pod in pods:
        restart(world, pod)
        if world.said(SETTLED)[0] == "True":
            break
        assert world.t < began + 3 * HOUR + EVERY
    assert began + 3 * HOUR <= world.t


def test_settle_time_of_the_policy_replaces_the_start_timeout() -> None:
    world = successful(policy=msgspec.structs.replace(POLICY, settle_seconds=30))
    world.run(29)
    assert world.said(SETTLED)[0] == "False"
    world.run(2)
    assert world.said(SETTLED)[0] == "True"


# the version before


def test_version_whose_pods_restart_like_those_of_the_version_before_is_not_blamed(kind: str) -> None:
    world = World(kind)
    world.policy = POLICY
    world.roll_out("v1")
    old = world.of("v1")
    for pod in old:
        pod.restarts, pod.ended_with, pod.ended_at = 10, ("Error", 1), world.t
    world.touch(*old)
    world.t += 10 * 3 * HOUR / 4  # four restarts in the time that counts
    world.begin("v2")
    world.make_up(3)
    world.remove(*old)
    world.run(10)
    pods = world.of("v2")
    restart(world, *pods, times=6)
    assert world.state("v2") == SUCCESS
    restart(world, *pods)
    assert world.state("v2") == SUSPEND


DAY = 86_400.0
SETTLE = Settle(HOUR, 3)


def older(world: World, count: int, *, restarts: int, age: float, image: str = "v1") -> list[Pod]:
    made = []
    for pod in world.make(count, image):
        pod.born, pod.restarts, pod.ended_with = world.t - age, restarts, ("Error", 1)
        made.append(world.project(pod))
    return made


@pytest.mark.parametrize(
    ("restarts", "age", "expected"),
    [
        (0, DAY, 0),
        (3, DAY, 0),
        (10, DAY, 1),  # a run lasts 8,340 s
        (24, DAY, 3),
        (240, DAY, 180),  # a run lasts 60 s, and the kubelet waits 300 s
        (2000, DAY, 2000),
        (4, HOUR, 4),
        (2, 3 * HOUR, 2),
        (2, 3 * HOUR + 1, 2),
    ],
)
def test_restarts_of_the_version_before_in_the_time_in_which_restarts_count(
    restarts: int, age: float, expected: int
) -> None:
    world = successful()
    pods = older(world, 3, restarts=restarts, age=age)
    assert restarts_before(pods, [], "v2", SETTLE, Settings(), world.t) == expected


def test_one_pod_that_always_restarts_says_nothing_about_the_version_before() -> None:
    world = successful()
    pods = [*older(world, 9, restarts=0, age=DAY), *older(world, 1, restarts=240, age=DAY)]
    assert restarts_before(pods, [], "v2", SETTLE, Settings(), world.t) == 0
    pods += older(world, 2, restarts=240, age=DAY)
    assert restarts_before(pods, [], "v2", SETTLE, Settings(), world.t) == 180


def test_pods_of_failed_versions_and_pods_that_ended_are_no_example() -> None:
    """A repair is not excused by the version that it repairs, but by the one before."""
    world = successful()
    good, bad = fingerprint("v1"), fingerprint("v2")
    (first,) = world.releases.values()
    world.begin("v2")
    second = world.releases[bad]
    before = msgspec.structs.replace(second.spec, restarts_before=7)
    releases = [first, msgspec.structs.replace(second, spec=before)]
    projected = [world._projected(each) for each in releases]
    of_bad = older(world, 3, restarts=50, age=HOUR, image="v2")
    of_good = older(world, 3, restarts=2, age=HOUR)
    ended = [msgspec.structs.replace(each, ended=True) for each in older(world, 3, restarts=9, age=HOUR)]

    def before_v3(pods: list[Pod]) -> int:
        return restarts_before(pods, projected, "v3", SETTLE, Settings(), world.t)

    assert before_v3([*of_bad, *of_good, *ended]) == 2
    assert before_v3([*of_bad, *ended]) == 7
    assert restarts_before(of_good, [], good, SETTLE, Settings(), world.t) == 0, "these pods are of the version itself"


@pytest.mark.parametrize("served", [False, True])
def test_withdrawn_rollback_goes_on_counting_the_restarts(served: bool) -> None:
    """The API server refuses the rollback, and meanwhile its reason is gone."""
    if served:
        world, pods = second_success()
        pod = pods[0]
    else:
        world = successful(replicas=1)
        world.run(HOUR + 100)
        old = world.of("v1")
        world.begin("v2")
        (pod,) = world.make_up()
        world.remove(*old)
        world.run(10)
        assert world.state("v2") == SUCCESS
    restart(world, pod, times=2)
    world.write_refused = "a policy"
    world.run(EVERY)
    world.touch(pod.crash(world.t))
    world.run(3)
    assert world.state("v2") == ROLLBACK
    world.touch(*[each.lose_readiness(world.t) for each in world.of("v1")])
    world.up(pod)
    world.run(30)
    world.write_refused = ""
    restart(world, pod, times=2)
    assert (world.state("v2"), world.suspended) == (SUSPEND, True)
