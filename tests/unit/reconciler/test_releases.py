"""What is decided of a release, for every kind of workload: one story per rule."""

from collections.abc import Callable

import msgspec
import pytest

from altershield.api import labels
from altershield.api.kinds import ConditionType, Giver, PodInfo, SourceRef, WorkloadState
from altershield.api.ops_config import Settings
from altershield.workloads.pods import Fault
from reconciler.releases.pod_groups import Group

from .world import KINDS, NAMESPACE, SimPod, World, fingerprint, infos, rfc3339, template

RUNNING, SUCCESS, SUSPEND = WorkloadState.RUNNING, WorkloadState.SUCCESS, WorkloadState.SUSPEND
FAILED, ROLLBACK = WorkloadState.FAILED, WorkloadState.ROLLBACK
VERIFIED, SETTLED, STALLED = ConditionType.VERIFIED, ConditionType.SETTLED, ConditionType.STALLED
NO_REPLICAS, ROLLED_BACK = ConditionType.NO_REPLICAS, ConditionType.ROLLED_BACK

each_kind = pytest.mark.parametrize("kind", KINDS)
ROLLING = ("Deployment", "StatefulSet", "DaemonSet", "CloneSet")
NOT_ROLLING = ("Deployment", "StatefulSet", "DaemonSet")


def first(kind: str, **world: float) -> World:
    """The first release of a workload; nothing is up yet."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.release("v1")
    made.rest()
    return made


def second(kind: str, count: int = 1, **world: float) -> tuple[World, list[SimPod]]:
    """A release after one that passed, whose pods serve; `count` pods of it were made."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.roll_out("v1")
    made.release("v2")
    made.rest()
    pods = made.make(count)
    made.rest()
    return made, pods


def restored(world: World, image: str = "v1") -> bool:
    return world.image == image and world.version == fingerprint(image)


# what up means


@each_kind
def test_a_release_begins_to_run_at_once(kind: str) -> None:
    world = first(kind)
    assert world.said(NO_REPLICAS) == ("", ""), "its pods are to come"
    world.make(1)
    world.rest()
    assert world.state() == RUNNING
    assert world.said(VERIFIED) == ("Unknown", "InProgress")
    found = world.condition(VERIFIED)
    assert found is not None
    assert found.message == "0 of 3 pods passed, 3 coming up"


@each_kind
def test_a_pod_is_up_once_it_was_ready_for_the_observation_time(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(9)
    assert (world.state(), len(world.batches)) == (RUNNING, 0)
    world.run(1)
    assert (world.state(), len(world.batches)) == (SUCCESS, 3)
    assert {each.spec.pod_infos[0].uid for each in world.batches.values()} == {pod.uid for pod in pods}


@each_kind
def test_a_pod_has_to_be_ready_for_min_ready_seconds_on_top(kind: str) -> None:
    world = first(kind)
    world.min_ready = 30
    world.up(*world.make(3))
    world.run(39)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


@each_kind
def test_more_min_ready_seconds_count_at_once(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(3))
    world.run(5)
    world.min_ready = 30
    world.run(30)
    assert world.state() == RUNNING
    world.run(5)
    assert world.state() == SUCCESS


@each_kind
def test_fewer_min_ready_seconds_count_at_once(kind: str) -> None:
    world = first(kind)
    world.min_ready = 100
    world.up(*world.make(3))
    world.run(50)
    world.min_ready = 0
    world.rest()
    assert world.state() == SUCCESS


@each_kind
def test_what_is_being_verified_has_not_passed(kind: str) -> None:
    world = first(kind)
    world.checked = False
    pods = world.make(3)
    world.up(*pods)
    world.run(80)
    assert (world.state(), len(world.batches)) == (RUNNING, 3)
    assert infos(world.status().defense_checking_pods) == sorted(pod.name for pod in pods)
    for pod in pods:
        world.judge(pod, "pass")
    world.rest()
    assert world.state() == SUCCESS, "a person need not wait"


@each_kind
def test_the_newest_batch_of_a_pod_counts(kind: str) -> None:
    """As of a pod that was overdue, passed by a person, and verified again by another leader."""
    world = first(kind)
    pods = world.roll_out("v1")
    old = next(each for each in world.batches.values() if each.spec.pod_infos[0].uid == pods[0].uid)
    name = old.metadata.name.rpartition("--x--")[0] + "--x--9"
    metadata = msgspec.structs.replace(old.metadata, name=name)
    world.batches[name] = msgspec.structs.replace(old, metadata=metadata)
    world.die()
    results = (PodInfo(pods[0].name, verdict="unpass"),)
    world._store_batch(old, msgspec.structs.replace(old.status, pod_results=results))
    world.run(20)
    assert world.state() == SUCCESS
    world.judge(pods[0], "unpass")
    world.rest()
    assert world.state() == SUSPEND


@each_kind
def test_without_observation_ready_is_up(kind: str) -> None:
    world = first(kind, observe=0)
    world.up(*world.make(3))
    world.rest()
    assert world.state() == SUCCESS


@each_kind
@pytest.mark.parametrize(("restarts", "seconds"), [(0, 10), (1, 20), (2, 40), (3, 80), (4, 120), (30, 120)])
def test_each_restart_doubles_what_is_observed_up_to_the_start_timeout(kind: str, restarts: int, seconds: int) -> None:
    world = first(kind)
    pods = world.make(3)
    pods[0].restarts = restarts
    world.up(*pods)
    world.run(seconds - 1)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


@each_kind
def test_a_restart_is_observed_even_where_nothing_else_is(kind: str) -> None:
    world = first(kind, observe=0)
    pods = world.make(3)
    pods[0].restarts = 2
    world.up(*pods)
    world.run(3)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS


@each_kind
def test_a_crash_a_second_after_ready_makes_no_success(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(1)
    world.touch(pods[0].crash(world.t))
    world.run(60)
    assert world.state() == RUNNING
    world.up(pods[0])
    world.run(19)
    assert world.state() == RUNNING, "it restarted once: it is observed for twice as long"
    world.run(1)
    assert world.state() == SUCCESS


@each_kind
@pytest.mark.parametrize("how", ["restarts", "ready_at"])
def test_a_pod_that_was_not_ready_between_two_looks_is_observed_anew(kind: str, how: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(9)
    pods[0].ready_at = world.t
    pods[0].restarts += how == "restarts"
    world.touch(pods[0])
    world.run(9)
    assert world.state() == RUNNING
    world.run(11)
    assert world.state() == SUCCESS


@each_kind
@pytest.mark.parametrize(
    "spoil",
    [
        lambda pod, t: pod.crash(t),
        lambda pod, t: pod.crash(t, "OOMKilled", 137),
        lambda pod, t: pod.lose_readiness(t),
    ],
    ids=["crash", "OOM", "readiness"],
)
def test_what_is_not_up_any_more_stands_in_the_way_of_success(
    kind: str, spoil: Callable[[SimPod, float], SimPod]
) -> None:
    """All pods up and passed, but never at one moment."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(20)
    assert len(world.batches) == 2
    world.touch(spoil(pods[0], world.t))
    world.up(pods[2])
    world.run(60)
    assert world.state() == RUNNING
    assert [down.uid for down in world.status().down_pods] == [pods[0].uid]
    world.up(pods[0])
    world.run(25)
    assert world.state() == SUCCESS
    assert world.status().down_pods == ()


@each_kind
def test_a_pod_on_a_node_that_is_not_ready_is_not_up(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(3))
    world.lose_node("node-1")
    world.run(60)
    assert world.state() == RUNNING
    world.find_node("node-1")
    world.run(10)
    assert world.state() == SUCCESS


@each_kind
def test_success_needs_as_many_pods_as_the_release_is_to_reach(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(2))
    world.run(20)
    assert (world.state(), len(world.batches)) == (RUNNING, 2)
    world.up(*world.make(1))
    world.run(10)
    assert world.state() == SUCCESS


@each_kind
@pytest.mark.parametrize("how", ["terminating", "evicted"])
def test_pods_that_do_not_exist_any_more_do_not_count(kind: str, how: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(5)
    if how == "terminating":
        pods[0].deleting = True
    else:
        pods[0].phase = "Failed"
    world.touch(pods[0])
    world.run(20)
    assert (world.state(), len(world.batches)) == (RUNNING, 2)


@each_kind
def test_success_waits_until_the_workloads_controller_has_seen_its_spec(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(3))
    world.run(5)
    world.observed = False
    world.run(20)
    assert world.state() == RUNNING
    world.observed = True
    world.rest()
    assert world.state() == SUCCESS


# the time after a success


@each_kind
def test_a_success_settles_after_the_start_timeout(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(3))
    world.run(10)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(119)
    assert world.said(SETTLED)[0] == "False"
    world.run(2)
    assert world.said(SETTLED) == ("True", "StayedUp")
    assert world.rest() == 0


@each_kind
def test_what_breaks_before_a_success_has_settled_puts_that_off(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(100)
    world.touch(pods[0].lose_readiness(world.t))
    world.rest()
    assert world.said(SETTLED) == ("False", "PodsDown")
    world.run(30)
    world.up(pods[0])
    world.run(10)
    assert world.said(SETTLED) == ("False", "PodsDown"), "what broke once is observed for twice as long"
    world.run(10)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(118)
    assert world.said(SETTLED)[0] == "False"
    world.run(3)
    assert world.said(SETTLED)[0] == "True"


@each_kind
def test_what_stays_broken_before_a_success_has_settled_ends_the_release(kind: str) -> None:
    world, pods = second(kind, 3)
    world.up(*pods)
    world.run(60)
    assert world.state() == SUCCESS
    old = world.make(1, "v1")
    world.up(*old)
    world.touch(pods[0].crash(world.t))
    world.run(119)
    assert world.state("v2") == SUCCESS
    world.run(2)
    assert restored(world)
    assert world.state("v2") == FAILED
    assert "RolledBack" in world.reasons


@each_kind
def test_with_nothing_to_go_back_to_what_breaks_after_a_success_suspends(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(60)
    world.touch(pods[0].crash(world.t, "OOMKilled", 137))
    world.run(121)
    assert world.state() == SUSPEND
    assert world.suspended
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    (failed,) = world.status().defense_check_fail_pods
    assert failed.uid == pods[0].uid
    assert failed.message.startswith(
        "not up any more (it was up until 120 s ago): CrashLoopBackOff (exit code 137): OOMKilled"
    )


@each_kind
def test_what_breaks_after_a_success_has_settled_is_history(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.touch(pods[0].crash(world.t))
    world.run(1000)
    assert world.state() == SUCCESS
    assert not world.suspended
    assert world.status().down_pods == ()
    assert world.said(STALLED) == ("", "")


@each_kind
def test_a_success_does_not_settle_without_a_pod(kind: str) -> None:
    """Scaled to zero just after it, and back: what then crashes is not history."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(20)
    world.replicas = 0
    world.remove(*pods)
    world.run(1000)
    assert (world.state(), world.said(SETTLED)) == (SUCCESS, ("False", "PodsDown"))
    assert world.rest() == 0
    world.replicas = 3
    pods = world.make(3)
    world.up(*pods)
    world.run(60)
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)


@each_kind
def test_a_success_does_not_settle_while_a_pod_is_looked_at_anew(kind: str) -> None:
    """A leader that has just begun has not seen whether they stayed up."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(10)
    world.advance(119)
    world.die()
    world.advance(2)
    world.rest()
    assert world.said(SETTLED) == ("False", "Observing"), "no pod is known to have broken"
    world.run(10)
    assert world.said(SETTLED)[0] == "True"


@each_kind
@pytest.mark.parametrize("breaks", ["crashes", "restarts", "loses its node"])
def test_what_breaks_while_a_new_leader_observes_it_puts_that_off(kind: str, breaks: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(60)
    world.die()
    world.rest()
    if breaks == "crashes":
        world.touch(pods[0].crash(world.t))
    elif breaks == "restarts":
        world.touch(pods[0].restart(world.t))
    else:
        pods[0].node = "node-9"
        world.lose_node("node-9")
    world.rest()
    assert world.said(SETTLED) == ("False", "PodsDown")
    if breaks == "loses its node":
        world.find_node("node-9")
    world.up(pods[0])
    world.run(21)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(105)
    assert world.said(SETTLED)[0] == "False"


@each_kind
def test_a_success_does_not_settle_on_pods_that_have_not_come_up_again(kind: str) -> None:
    """The pods that broke were deleted; those made in their place have not been up yet."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(20)
    world.touch(*[pod.crash(world.t) for pod in pods])
    world.rest()
    world.remove(*pods)
    pods = world.make(3)
    world.run(100)
    assert world.said(SETTLED) == ("False", "PodsDown")
    world.up(*pods)
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing")
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing"), "they were not up for so long"
    world.run(20)
    assert world.said(SETTLED)[0] == "True"


@each_kind
def test_a_success_settles_only_with_a_pod_that_was_up_all_the_time(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(100)
    world.remove(*pods)
    pods = world.make(3)
    world.up(*pods)
    world.run(60)
    assert world.said(SETTLED) == ("False", "Observing"), "none of these has proved that it stays up"
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)


@each_kind
def test_pods_that_are_made_and_taken_all_the_time_do_not_keep_a_success_from_settling(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.run(10)
    for _ in range(5):
        more = world.make(2)
        world.up(*more)
        world.run(30)
        world.remove(*more)
    world.rest()
    assert world.said(SETTLED)[0] == "True"


# a deadline in every state


@each_kind
def test_a_pod_that_never_comes_up_ends_the_release(kind: str) -> None:
    world, (pod, *_) = second(kind)
    world.touch(pod.wait_for_image())
    world.run(119)
    assert world.state() == RUNNING
    world.run(1)
    assert restored(world)
    assert world.state("v2") == FAILED
    status = world.status("v2")
    assert status.rollback_to == fingerprint("v1")
    found = world.condition(ROLLED_BACK, "v2")
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodNotUp")
    assert f'pod {pod.name} is not up after 120 s: ImagePullBackOff: Back-off pulling image "busybo"' in found.message
    assert world.reasons[-2:] == ["RollbackStarted", "RolledBack"]
    assert world.looks > 0


@each_kind
def test_without_an_older_version_it_is_suspended_with_the_pods_own_words(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.touch(pods[2].wait_for_image())
    world.run(119)
    assert world.state() == RUNNING
    assert len(world.status().defense_check_pass_pods) == 2
    assert world.status().down_pods == (), "it never was up"
    world.run(1)
    assert world.state() == SUSPEND
    assert world.suspended
    (failed,) = world.status().defense_check_fail_pods
    assert (failed.pod, failed.verdict) == (pods[2].name, "unpass")
    assert failed.message == 'not up after 120 s: ImagePullBackOff: Back-off pulling image "busybo"'
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    found = world.condition(VERIFIED)
    assert found is not None
    assert found.message.startswith(f"1 of 3 pods failed verification: {pods[2].name} (not up after 120 s")
    assert world.reasons[-1] == "ReleaseSuspended"
    assert world.rest() == 0
    assert not world.run(1000)


@each_kind
def test_the_deadline_counts_from_when_a_pod_was_last_up(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(100)
    world.touch(pods[0].crash(world.t))
    world.run(18)
    world.up(pods[2])
    world.run(101)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUSPEND
    assert [failed.uid for failed in world.status().defense_check_fail_pods] == [pods[0].uid]


@each_kind
def test_a_pod_that_comes_up_again_and_again_without_staying_up_is_overdue(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    for _ in range(20):
        if world.state() != RUNNING:
            break
        world.up(pods[2])
        world.run(7)
        world.touch(pods[2].crash(world.t))
        world.run(8)
    assert world.state() == SUSPEND
    assert world.t - pods[2].born < 150


@each_kind
def test_a_pod_that_was_up_is_remembered_by_the_next_leader(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(30)
    world.touch(pods[0].crash(world.t))
    world.run(60)
    world.die()
    world.up(pods[2])
    world.run(59)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUSPEND


@each_kind
@pytest.mark.parametrize("verdict", ["", "pass"])
def test_a_pod_that_passed_and_broke_unseen_has_its_time_from_when_that_is_seen(kind: str, verdict: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(15)
    if verdict:
        world.judge(pods[0], verdict)
        world.rest()
    world.advance(110)
    world.up(pods[2])
    world.touch(pods[0].lose_readiness(world.t))
    world.die()
    world.rest()
    assert world.state() == RUNNING
    world.up(pods[0])
    world.run(20)
    assert world.state() == SUCCESS


@each_kind
def test_one_bad_pod_among_many_ends_nothing_but_is_told(kind: str) -> None:
    world, pods = second(kind, 10, replicas=10)
    world.up(*pods[1:])
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert world.state() == RUNNING
    assert world.said(STALLED) == ("True", "PodsOverdue")
    found = world.condition(STALLED)
    assert found is not None
    assert found.message.startswith(f"1 of 10 pods overdue, too few to end the release: pod {pods[0].name} is not up")
    assert world.reasons.count("ReleaseStalled") == 1
    assert world.rest() == 0
    world.touch(pods[1].crash(world.t))
    world.run(121)
    assert restored(world)


@each_kind
@pytest.mark.parametrize(
    ("share", "bad", "ends"),
    [("20%", 1, False), ("20%", 2, True), ("3", 2, False), ("3", 3, True), ("1", 1, True), ("1%", 1, True)],
)
def test_the_setting_says_how_many_pods_have_to_be_overdue(kind: str, share: str, bad: int, ends: bool) -> None:
    world, pods = second(kind, 10, replicas=10)
    world.settings = Settings(share=share)
    world.up(*pods[bad:])
    world.run(121)
    assert restored(world) is ends


@each_kind
def test_the_share_is_of_the_pods_that_exist(kind: str) -> None:
    world, _ = second(kind, 1, replicas=10)
    world.run(121)
    assert restored(world)


@each_kind
def test_switched_off_nothing_is_undone_but_suspended(kind: str) -> None:
    world, _ = second(kind)
    world.settings = Settings(rollback=False)
    world.run(121)
    assert world.image == "v2"
    assert (world.state(), world.suspended) == (SUSPEND, True)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert found.message.endswith("not rolled back: the setting `rollback` is off")


@each_kind
def test_with_both_settings_off_it_is_only_recorded(kind: str) -> None:
    world, _ = second(kind)
    world.settings = Settings(rollback=False, blocking=False)
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, False)
    assert world.announced[-1].message.endswith("further releases are admitted, because the setting `blocking` is off")


@each_kind
def test_blocking_that_is_switched_on_labels_what_is_suspended_already(kind: str) -> None:
    world, _ = second(kind)
    world.settings = Settings(rollback=False, blocking=False)
    world.run(121)
    world.settings = Settings(rollback=False)
    count = len(world.announced)
    world.rest()
    assert world.suspended
    assert len(world.announced) == count


@each_kind
def test_rollback_that_is_switched_off_withdraws_an_intent(kind: str) -> None:
    world, _ = second(kind)
    world.write_refused = "policy"
    world.run(121)
    assert world.state() == ROLLBACK
    world.settings = Settings(rollback=False)
    world.rest()
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert "RollbackWithdrawn" in world.reasons


# zero replicas


@each_kind
def test_zero_replicas_prove_nothing(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.own_labels[labels.SUSPEND] = "1"
    world.replicas = 0
    world.remove(*list(world.pods.values()))
    world.release("v2")
    world.run(1000)
    assert world.state() == RUNNING
    assert world.said(NO_REPLICAS) == ("True", "NoPods")
    assert world.suspended
    assert set(world.releases) == {fingerprint("v1"), fingerprint("v2")}
    world.replicas = 2
    world.up(*world.make(2))
    world.run(10)
    assert world.state() == SUCCESS
    assert world.condition(NO_REPLICAS) is None
    assert not world.suspended
    assert set(world.releases) == {fingerprint("v2")}


@each_kind
def test_scaled_to_zero_a_suspended_release_stays_suspended(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.run(121)
    assert world.state() == SUSPEND
    message = world.condition(VERIFIED)
    world.replicas = 0
    world.remove(*pods)
    world.run(100)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.condition(VERIFIED) == message, "why it is suspended stays"
    world.replicas = 1
    world.make(1)
    world.rest()
    assert (world.state(), world.suspended) == (RUNNING, True)


@each_kind
def test_pods_that_are_about_to_go_prove_nothing(kind: str) -> None:
    world = World(kind)
    failed, *others = world.roll_out("v1")
    assert world.judge(failed, "unpass")
    world.rest()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    world.replicas = 0
    for pod in (failed, *others):
        world.remove(pod)
        world.run(20)
        assert (world.state(), world.suspended) == (SUSPEND, True)


# whose fault


def unscheduled(world: World, pod: SimPod) -> None:
    world.touch(pod.find_no_node())


def lost(world: World, pod: SimPod) -> None:
    pod.node = "node-2"
    world.touch(pod)
    world.lose_node("node-2")


def no_volume(world: World, pod: SimPod) -> None:
    world.events_say = Fault.VOLUME
    world.touch(pod.be_created())


CLUSTERS_FAULTS = [(unscheduled, "Unschedulable"), (lost, "NodeNotReady"), (no_volume, "VolumeNotAttached")]


@each_kind
@pytest.mark.parametrize(("spoil", "reason"), CLUSTERS_FAULTS, ids=[reason for _, reason in CLUSTERS_FAULTS])
def test_what_is_the_clusters_fault_ends_nothing(
    kind: str, spoil: Callable[[World, SimPod], None], reason: str
) -> None:
    world, (pod, *_) = second(kind)
    spoil(world, pod)
    world.run(1000)
    assert (world.image, world.state(), world.suspended) == ("v2", RUNNING, False)
    assert world.said(STALLED) == ("True", reason)
    assert world.reasons.count("ReleaseStalled") == 1
    assert world.announced[-1].warning
    assert world.rest() == 0


@each_kind
@pytest.mark.parametrize(("spoil", "reason"), CLUSTERS_FAULTS, ids=[reason for _, reason in CLUSTERS_FAULTS])
def test_once_the_cluster_lets_it_the_release_goes_on(
    kind: str, spoil: Callable[[World, SimPod], None], reason: str
) -> None:
    world, (pod, *more) = second(kind, 3)
    world.up(*more)
    spoil(world, pod)
    world.run(1000)
    pod.unscheduled, pod.node, pod.creating = False, "node-1", False
    world.touch(pod)
    world.run(60)
    assert world.state() == RUNNING, "its time begins anew"
    world.up(pod)
    world.run(10)
    assert world.state() == SUCCESS
    assert world.said(STALLED) == ("False", "GoesOn")


@each_kind
def test_a_pod_that_the_cluster_held_up_and_that_then_crashes_ends_the_release(kind: str) -> None:
    world, (pod, *_) = second(kind)
    world.touch(pod.find_no_node())
    world.run(1000)
    pod.unscheduled, pod.node = False, "node-1"
    world.touch(pod.crash(world.t))
    world.run(121)
    assert restored(world)


def test_pods_that_a_quota_refuses_stall_the_release() -> None:
    world, (pod, *_) = second("Deployment")
    world.refusal = "exceeded quota: pods"
    world.up(pod)
    world.run(1000)
    assert world.state() == RUNNING
    assert world.said(STALLED) == ("True", "FailedCreate")
    found = world.condition(STALLED)
    assert found is not None
    assert "2 pods cannot be created: FailedCreate: exceeded quota: pods" in found.message


@each_kind
def test_pods_that_never_appear_stall_the_release(kind: str) -> None:
    world, (pod, *_) = second(kind)
    world.up(pod)
    world.run(10 + 119)
    assert world.said(STALLED) == ("", "")
    world.run(1)
    assert world.said(STALLED) == ("True", "PodsMissing")


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
def test_a_paused_rollout_is_said_to_be(kind: str) -> None:
    world, (pod, *_) = second(kind)
    world.paused = True
    world.up(pod)
    world.run(200)
    assert (world.state(), world.said(STALLED)) == (RUNNING, ("True", "Paused"))


@each_kind
def test_a_template_of_which_nothing_was_made_stalls_the_release(kind: str) -> None:
    world = World(kind)
    world.release("v1")
    made = world.revisions.pop("v1")
    world.run(119)
    assert world.said(STALLED) == ("", "")
    world.run(1)
    assert world.said(STALLED) == ("True", "NotRolledOut")
    world.revisions["v1"] = made
    world.up(*world.make(3))
    world.run(20)
    assert world.state() == SUCCESS


# clocks


@each_kind
@pytest.mark.parametrize("skew", [-300, -130, 130, 300])
def test_a_kubelets_clock_that_is_wrong_changes_nothing_of_a_good_release(kind: str, skew: int) -> None:
    world, pods = second(kind, 3)
    world.kubelet = skew
    world.run(20)
    world.up(*pods)
    world.run(5)
    assert (world.state(), len(world.batches)) == (RUNNING, 3), "those of v1"
    world.run(6)
    assert (world.image, world.state()) == ("v2", SUCCESS)


@each_kind
@pytest.mark.parametrize("skew", [-300, -130, 130, 300])
def test_a_kubelets_clock_that_is_wrong_hides_no_crash(kind: str, skew: int) -> None:
    world, pods = second(kind, 3)
    world.kubelet = skew
    for _ in range(20):
        if world.image != "v2":
            break
        world.up(*pods)
        world.run(5)
        for pod in pods:
            pod.crash(world.t)
        world.touch(*pods)
        world.run(5)
    assert restored(world)


@each_kind
def test_a_kubelets_word_counts_only_past_any_skew(kind: str) -> None:
    """A leader that has just begun need not observe what has been ready for long; whether it has, a kubelet says."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods)
    world.die()
    world.advance(309)
    world.rest()
    assert (world.state(), len(world.batches)) == (RUNNING, 0)
    world.die()
    world.advance(1)
    world.rest()
    assert world.state() == SUCCESS


@each_kind
def test_a_restart_that_was_seen_counts_whatever_the_kubelet_says_of_readiness(kind: str) -> None:
    """A container that ends may be back before the kubelet takes its pod for not ready."""
    world = World(kind)
    world.release("v1")
    world.rest()
    pods = world.make(3)
    world.up(*pods)
    world.run(20)
    world.advance(400)
    world.rest()
    pods[0].restarts += 1
    world.touch(pods[0])
    world.rest()
    assert world.groups is not None
    assert [tracked.pod.metadata.uid for tracked in world.groups.pods_in(Group.OBSERVING)] == [pods[0].uid]


@each_kind
@pytest.mark.parametrize("skew", [-1.5, 1.5])
def test_an_age_is_by_the_api_servers_clock_as_far_as_that_is_known(kind: str, skew: float) -> None:
    world = World(kind)
    world.ours = skew
    world.roll_out("v1")
    world.release("v2")
    world.run(30)
    world.make(1)
    world.run(117)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(6)
    assert restored(world)


# going back


@pytest.mark.parametrize("kind", NOT_ROLLING)
def test_what_does_not_roll_is_not_undone_by_itself(kind: str) -> None:
    world, _ = second(kind)
    world.rolling = False
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "not rolled back: the update strategy is" in found.message


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
def test_a_paused_workload_is_not_undone(kind: str) -> None:
    world, _ = second(kind)
    world.paused = True
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)


@each_kind
def test_where_no_older_version_serves_there_is_nothing_to_go_back_to(kind: str) -> None:
    world, _ = second(kind)
    for pod in world.of("v1"):
        pod.lose_readiness(world.t)
    world.touch(*world.of("v1"))
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert found.message.endswith("not rolled back: no pod of an older version is ready")


@each_kind
def test_pods_on_a_lost_node_do_not_serve(kind: str) -> None:
    world, (pod, *_) = second(kind)
    pod.node = "node-2"
    world.touch(pod)
    world.lose_node("node-1")
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)


@each_kind
def test_a_version_is_undone_by_itself_only_once(kind: str) -> None:
    world, _ = second(kind)
    world.run(121)
    assert restored(world)
    world.remove(*world.of("v2"))
    world.run(20)
    assert world.state("v1") == SUCCESS
    assert world.state("v2") == FAILED, "what was rolled back stays known"
    world.release("v2")
    world.rest()
    assert world.said(ROLLED_BACK) == ("False", "ReleasedAgain")
    world.make(1)
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)


@each_kind
def test_a_version_that_was_rolled_back_and_then_passes_is_as_good_as_any(kind: str) -> None:
    world, _ = second(kind)
    world.run(121)
    world.remove(*world.of("v2"))
    world.run(20)
    world.roll_out("v2")
    assert world.condition(ROLLED_BACK) is None


@each_kind
def test_it_goes_back_past_what_did_not_pass(kind: str) -> None:
    """v2 came up, but a person failed it; v3 repairs, and does not come up."""
    world, pods = second(kind, 3)
    world.up(*pods)
    world.run(15)
    assert world.judge(pods[0], "unpass")
    world.rest()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    world.up(*world.make(1, "v1"))
    world.release("v3")
    world.make(1)
    world.run(121)
    assert restored(world)
    assert world.status("v3").previous.uid == "uid-v1"


@each_kind
def test_the_last_version_that_passed_is_known_also_when_its_record_is_gone(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.roll_out("v2")
    assert set(world.releases) == {fingerprint("v2")}
    assert world.status().previous.name == "web-v1"
    world.up(*world.make(1, "v1"))
    world.ask_rollback()
    world.run(30)
    assert restored(world)


@each_kind
def test_an_object_that_was_made_anew_is_recognised_by_its_template(kind: str) -> None:
    world, _ = second(kind)
    world.revisions["v1"]["metadata"]["uid"] = "uid-v1-anew"
    if kind == "Deployment":
        for pod in world.of("v1"):
            pod.owner["uid"] = "uid-v1-anew"
        world.touch(*world.of("v1"))
    world.run(121)
    assert restored(world)


@each_kind
def test_a_template_that_somebody_edited_is_never_released(kind: str) -> None:
    world, _ = second(kind)
    edited = template("evil")
    held = world.revisions["v1"]
    if kind == "Deployment":
        held["spec"]["template"] = edited
    else:
        held["data"]["spec"]["template"] = edited
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "web-v1 has been changed since it passed" in found.message


@each_kind
def test_a_target_that_is_gone_is_said_to_be(kind: str) -> None:
    world, _ = second(kind)
    world.release("v3")
    world.rest()
    world.up(*world.make(1, "v2"))
    world.make(1)
    world.remove(*world.of("v1"))
    del world.revisions["v1"]
    world.run(121)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "web-v1, which held the last version that passed, does not exist any more" in found.message


@each_kind
def test_a_target_whose_pods_are_not_ready_any_more_is_none(kind: str) -> None:
    world, _ = second(kind)
    world.release("v3")
    world.rest()
    world.up(*world.make(1, "v2"))
    world.make(1)
    for pod in world.of("v1"):
        pod.lose_readiness(world.t)
    world.touch(*world.of("v1"))
    world.run(121)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "no pod of" in found.message


@each_kind
@pytest.mark.parametrize("ready", [3, 2])
def test_a_version_from_before_altershield_is_gone_back_to_where_all_of_it_is_ready(kind: str, ready: int) -> None:
    world = World(kind)
    world.release("v0")
    old = world.make(3)
    world.up(*old[:ready])
    world.generation, world.own_labels = 1, {}
    held = world.revisions["v0"]["spec" if kind == "Deployment" else "data"]
    del (held if kind == "Deployment" else held["spec"])["template"]["metadata"]["labels"][labels.VERSION]
    world.release("v1")
    world.rest()
    world.make(1)
    world.run(121)
    assert restored(world, "v0") is (ready == 3)
    assert world.status("v1").rollback_to == (fingerprint("v0") if ready == 3 else "")


@each_kind
def test_an_intent_is_withdrawn_when_the_pods_came_up_after_all(kind: str) -> None:
    world, pods = second(kind, 3)
    world.up(*pods[1:])
    world.write_refused = "denied by policy"
    world.run(130)
    assert world.state() == ROLLBACK
    assert world.said(ROLLED_BACK) == ("False", "WriteRefused")
    assert "RollbackRefused" in world.reasons
    world.up(pods[0])
    world.run(15)
    assert (world.image, world.state()) == ("v2", SUCCESS)
    assert "RollbackWithdrawn" in world.reasons
    assert world.condition(ROLLED_BACK) is None


@each_kind
@pytest.mark.parametrize("how", ["gone", "edited", "sick"])
def test_an_intent_is_withdrawn_when_its_target_does_not_hold_any_more(kind: str, how: str) -> None:
    world, _ = second(kind)
    world.write_refused = "denied by policy"
    world.run(125)
    assert world.state() == ROLLBACK
    match how:
        case "gone":
            del world.revisions["v1"]
        case "edited":
            key = "spec" if kind == "Deployment" else "data"
            held = world.revisions["v1"][key]
            (held if kind == "Deployment" else held["spec"])["template"] = template("evil")
        case _:
            for pod in world.of("v1"):
                pod.lose_readiness(world.t)
    world.write_refused = ""
    world.run(10)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    assert "RollbackWithdrawn" in world.reasons


@each_kind
def test_a_refused_write_is_named_and_verification_and_suspension_go_on(kind: str) -> None:
    world, pods = second(kind, 3)
    world.write_refused = "admission webhook policy denied the request"
    world.run(125)
    assert world.state() == ROLLBACK
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "; the API server refuses to change the workload: admission webhook policy denied" in found.message
    assert world.reasons.count("RollbackRefused") == 1
    world.run(20)
    assert world.suspended
    world.up(pods[0])
    count = len(world.batches)
    world.run(15)
    assert len(world.batches) == count + 1
    world.write_refused = ""
    world.rest()
    assert restored(world)
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("True", "PodNotUp")


@each_kind
@pytest.mark.parametrize("to", ["", "version", "name"])
def test_a_rollback_that_is_asked_for_is_done_whatever_the_settings(kind: str, to: str) -> None:
    world, pods = second(kind, 3)
    world.settings = Settings(rollback=False)
    world.up(*pods)
    world.run(20)
    world.up(*world.make(1, "v1"))
    world.ask_rollback({"": "", "version": fingerprint("v1"), "name": "web-v1"}[to])
    world.run(5)
    assert restored(world)
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("True", "Requested")


@each_kind
def test_a_rollback_to_what_is_not_there_is_refused_with_what_there_is(kind: str) -> None:
    world, _ = second(kind)
    world.ask_rollback("nowhere")
    world.rest()
    assert (world.image, world.state()) == ("v2", RUNNING)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert (found.status, found.reason) == ("False", "NoTarget")
    assert found.message == (
        "a rollback was requested, but the workload has no version nowhere; "
        f"set `rollbackTo` to one of: web-v1 (version {fingerprint('v1')})"
    )
    assert "RollbackImpossible" in world.reasons
    assert world.status().rollback_to == ""


@each_kind
def test_a_rollback_that_is_asked_for_in_vain_unsettles_nothing(kind: str) -> None:
    world = first(kind)
    world.roll_out("v1")
    world.ask_rollback("nowhere")
    world.rest()
    assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True")
    assert "RollbackImpossible" in world.reasons
    assert world.rest() == 0


@each_kind
def test_why_a_release_was_not_undone_is_forgotten_when_its_verdict_is_corrected(kind: str) -> None:
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(121)
    assert (world.state(), world.said(ROLLED_BACK)) == (SUSPEND, ("False", "NotUndone"))
    world.judge(pods[2], "pass")
    world.rest()
    assert (world.state(), world.said(ROLLED_BACK)) == (RUNNING, ("", ""))


@each_kind
def test_a_release_that_was_undone_has_failed_verification(kind: str) -> None:
    world, _ = second(kind)
    world.run(125)
    assert (world.image, world.state("v2")) == ("v1", FAILED)
    assert world.said(VERIFIED, "v2") == ("False", Giver.HEALTH)
    found = world.condition(VERIFIED, "v2")
    assert found is not None
    assert "is not up after 120 s" in found.message


@each_kind
def test_a_pod_that_is_ready_under_a_new_leader_may_have_been_up_until_then(kind: str) -> None:
    world, (pod,) = second(kind)
    world.checked = False
    world.run(110)
    world.up(pod)
    world.die()
    world.run(5)
    world.touch(pod.lose_readiness(world.t))
    world.run(60)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(70)
    assert world.image == "v1"


@each_kind
def test_a_rollback_without_a_version_that_passed_is_refused(kind: str) -> None:
    world = World(kind)
    world.release("v1")
    world.rest()
    world.release("v2")
    world.rest()
    world.make(1)
    world.rest()
    world.ask_rollback()
    world.rest()
    assert (world.image, world.state()) == ("v2", RUNNING)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "no version has passed verification before this one; set `rollbackTo` to one of: web-v1" in found.message
    world.ask_rollback("web-v1")
    world.rest()
    assert restored(world)


@each_kind
def test_the_first_version_has_nothing_to_go_back_to(kind: str) -> None:
    world = first(kind)
    world.make(1)
    world.rest()
    world.ask_rollback()
    world.rest()
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert found.message.endswith("; the workload has no older version")


@each_kind
def test_a_release_in_between_forestalls_a_rollback(kind: str) -> None:
    world, _ = second(kind)
    world.write_refused = "denied"
    world.run(121)
    world.release("v3")
    world.rest()
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("False", "Superseded")
    assert world.status("v3").previous.uid == "uid-v1"


def test_going_back_deletes_the_pods_that_a_controller_in_order_would_wait_for() -> None:
    world, (fine, pod) = second("StatefulSet", 2)
    world.up(fine)
    world.touch(pod.wait_for_image())
    written: list[str] = []
    world.write_hook = lambda what: written.append(f"{what} {world.state('v2')}")
    world.run(121)
    assert restored(world)
    assert f"delete pod {ROLLBACK}" in written, "before the record is closed"
    assert pod.uid not in world.pods
    assert fine.uid in world.pods, "what is ready is replaced in its turn"
    assert world.state("v2") == FAILED


@each_kind
def test_a_target_that_a_person_named_is_not_released_once_it_was_edited(kind: str) -> None:
    world, _ = second(kind)
    world.write_refused = "denied by policy"
    world.ask_rollback("web-v1")
    world.rest()
    assert world.said(ROLLED_BACK) == ("False", "WriteRefused")
    held = world.revisions["v1"]["spec" if kind == "Deployment" else "data"]
    (held if kind == "Deployment" else held["spec"])["template"] = template("evil")
    world.write_refused = ""
    world.rest()
    assert (world.image, world.state()) == ("v2", RUNNING)
    assert "RollbackWithdrawn" in world.reasons


@each_kind
def test_an_intent_is_withdrawn_when_its_target_alone_is_not_healthy_any_more(kind: str) -> None:
    world, old = second(kind)
    world.up(*old)
    world.release("v3")
    world.rest()
    world.make(1)
    world.write_refused = "denied by policy"
    world.run(125)
    assert world.state() == ROLLBACK
    for pod in world.of("v1"):
        pod.lose_readiness(world.t)
    world.write_refused = ""
    world.run(5)
    assert (world.image, world.state()) == ("v3", SUSPEND)


@each_kind
def test_the_end_of_a_release_is_written_at_once(kind: str) -> None:
    """Who dies in between leaves no state without its reason."""
    world = first(kind)
    world.make(3)
    world.rest()
    world.advance(120)
    world.reconcile()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "CloneSet"])
def test_other_kinds_replace_such_pods_themselves(kind: str) -> None:
    world, (pod, *_) = second(kind)
    world.run(121)
    assert pod.uid in world.pods


# verdicts


@each_kind
def test_a_person_is_believed_at_any_time(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    assert world.judge(pods[1], "unpass")
    world.rest()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.PERSON)
    (failed,) = world.status().defense_check_fail_pods
    assert (failed.pod, failed.message) == (pods[1].name, "find error")
    assert world.own_labels[labels.SUSPEND] == str(int(world.now))
    world.judge(pods[1], "pass")
    world.rest()
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert world.reasons == ["ReleaseSuspended", "ReleaseResumed"]


@each_kind
def test_a_pod_whose_verdict_is_taken_back_while_it_is_down_has_its_time(kind: str) -> None:
    """Also under a leader that has never seen it up."""
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[1], "unpass")
    world.rest()
    world.die()
    world.touch(pods[1].lose_readiness(world.t))
    world.run(10)
    world.judge(pods[1], "")
    world.run(10)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.up(pods[1])
    world.run(60)
    assert (world.state(), world.suspended) == (SUCCESS, False)


@each_kind
def test_who_deletes_a_change_pod_does_not_delete_its_verdict(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[1], "unpass")
    world.rest()
    for name in list(world.batches):
        del world.batches[name]
    world.groups = None
    world.rest()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.PERSON)
    assert world.reasons == ["ReleaseSuspended"]
    world.judge(pods[1], "pass")
    world.run(20)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert "ReleaseStalled" not in world.reasons
    world.batches.clear()
    world.groups = None
    world.run(20)
    assert (world.state(), world.suspended) == (SUCCESS, False), "what was corrected stays so"


@each_kind
def test_a_verdict_whose_pod_and_change_pod_are_both_gone_is_not_made_again(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[1], "unpass")
    world.rest()
    world.remove(pods[1])
    world.batches.clear()
    world.groups = None
    world.up(*world.make(1))
    world.run(60)
    assert (world.state(), world.suspended) == (SUCCESS, False)


@each_kind
@pytest.mark.parametrize("verdict", ["fail", "PASS", "x"])
def test_any_word_but_pass_fails_a_pod(kind: str, verdict: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], verdict)
    world.rest()
    assert world.state() == SUSPEND


@each_kind
def test_a_persons_pass_is_believed_also_of_a_pod_that_is_not_up(kind: str) -> None:
    """And not failed again: it is no success either, so what it waits for is said."""
    world = first(kind)
    pods = world.make(3)
    world.up(*pods[1:])
    world.run(121)
    assert world.state() == SUSPEND
    assert world.judge(pods[0], "pass")
    world.run(1000)
    assert world.state() == RUNNING
    assert world.said(STALLED) == ("True", "PodsOverdue")
    assert len(world.batches) == 3
    world.die()
    world.rest()
    assert world.said(STALLED) == ("True", "PodsOverdue"), "it never was up, and the next leader knows that"
    world.up(pods[0])
    world.run(10)
    assert (world.state(), world.suspended) == (SUCCESS, False)


@each_kind
def test_the_suspension_ends_with_a_success_alone(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    world.remove(pods[0])
    world.run(60)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.up(*world.make(1))
    world.run(15)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_a_verdict_is_about_a_pod_not_its_name() -> None:
    world = World("StatefulSet", replicas=1)
    world.release("v1")
    world.rest()
    (pod,) = world.make(1, number=0)
    world.up(pod)
    world.run(15)
    world.judge(pod, "unpass")
    world.rest()
    world.remove(pod)
    (anew,) = world.make(1, number=0)
    assert anew.name == pod.name
    world.rest()
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.up(anew)
    world.run(9)
    assert world.suspended
    world.run(1)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert len(world.batches) == 2


def test_a_pod_made_anew_before_the_old_one_is_seen_to_be_gone_keeps_its_name() -> None:
    world = World("StatefulSet", replicas=1)
    world.release("v1")
    world.rest()
    (pod,) = world.make(1, number=0)
    world.rest()
    (anew,) = world.make(1, number=0)
    world.remove(pod)
    world.up(anew)
    world.run(10)
    assert world.state() == SUCCESS
    assert infos(world.status().defense_check_pass_pods) == [anew.name]


@each_kind
def test_a_repair_keeps_the_suspension_until_it_succeeds(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    world.own_labels[labels.IGNORED_SUSPEND] = "true"
    world.release("v2")
    world.rest()
    assert labels.IGNORED_SUSPEND not in world.own_labels, "it counts once"
    fresh = world.make(3)
    world.up(*fresh)
    world.remove(*pods)
    world.run(9)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.run(1)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert set(world.releases) == {fingerprint("v2")}


@each_kind
def test_pods_that_come_after_a_success_are_verified_without_taking_it_back(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.replicas = 4
    late = world.make(1)
    world.up(*late)
    world.run(9)
    assert (world.state(), len(world.batches)) == (SUCCESS, 3)
    world.run(1)
    assert (world.state(), len(world.batches)) == (SUCCESS, 4)


# who is believed


@each_kind
def test_labels_of_pods_are_no_evidence(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    for forged in (fingerprint("v2"), ""):
        pods[0].pod_labels[labels.VERSION] = forged
        world.touch(pods[0])
        world.rest()
        assert (world.state(), world.suspended) == (SUSPEND, True)
        assert pods[0].pod_labels[labels.VERSION] == fingerprint("v1"), "it is put back"


def test_where_the_selector_looks_at_the_label_nothing_is_put_back() -> None:
    world = first("Deployment")
    pods = world.make(3)
    manifest = world.manifest

    def selecting() -> dict[str, object]:
        made = manifest()
        made["spec"]["selector"]["matchLabels"][labels.VERSION] = world.version
        return made

    world.manifest = selecting  # type: ignore[method-assign]
    pods[0].pod_labels[labels.VERSION] = "forged"
    world.touch(pods[0])
    world.rest()
    assert pods[0].pod_labels[labels.VERSION] == "forged"


@each_kind
def test_a_failed_pod_that_was_given_another_owner_stays_failed(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    pods[0].owner = {**pods[0].owner, "uid": "another"}
    pods[0].pod_labels[labels.CONTROLLER_REVISION_HASH] = "another"
    world.touch(pods[0])
    world.run(60)
    assert (world.state(), world.suspended) == (SUSPEND, True)


@each_kind
@pytest.mark.parametrize("offset", [-1000, 1000, None])
def test_a_mark_that_cannot_be_true_does_not_count_and_is_written_anew(kind: str, offset: float | None) -> None:
    world = first(kind)
    pods = world.make(3)
    for pod in pods:
        pod.pod_labels[labels.OPERATE_FINISHED] = "yesterday" if offset is None else str(int(world.now + offset))
    world.touch(*pods)
    world.run(30)
    assert world.state() == RUNNING
    world.up(*pods)
    world.run(10)
    assert world.state() == SUCCESS
    assert {pod.pod_labels[labels.OPERATE_FINISHED] for pod in pods} == {str(int(world.now))}


@each_kind
def test_with_a_mark_from_its_template_a_pod_that_never_comes_up_is_overdue_all_the_same(kind: str) -> None:
    world, (pod, *_) = second(kind)
    pod.pod_labels[labels.OPERATE_FINISHED] = str(int(world.now))
    world.touch(pod)
    world.run(121)
    assert restored(world)


# pods that are updated in place


def test_a_pod_that_was_updated_in_place_comes_up_anew() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    pods[0].restarts = 7
    world.touch(pods[0])
    world.release("v2")
    world.rest()
    for pod in pods:
        world.update_in_place(pod)
    world.run(5)
    assert (world.state(), len(world.of("v2"))) == (RUNNING, 3)
    world.up(*pods)
    world.run(9)
    assert world.state() == RUNNING
    world.run(1)
    assert world.state() == SUCCESS, "restarts from before do not count"
    assert len([each for each in world.batches.values() if fingerprint("v2") in each.metadata.name]) == 3


def test_a_pod_that_does_not_come_up_after_it_was_updated_in_place_is_overdue_from_then() -> None:
    world = World("CloneSet")
    pods = world.roll_out("v1")
    world.release("v2")
    world.run(60)
    world.update_in_place(pods[0])
    world.run(119)
    assert world.image == "v2"
    world.run(1)
    assert restored(world)


# how far a release is to reach


@pytest.mark.parametrize(("kind", "partition"), [("StatefulSet", 2), ("CloneSet", 2), ("CloneSet", "50%")])
def test_a_partition_says_how_far_a_release_is_to_reach(kind: str, partition: int | str) -> None:
    world = World(kind, replicas=4)
    old = world.roll_out("v1")
    world.partition = partition
    world.release("v2")
    world.rest()
    world.up(*world.make(2))
    world.remove(*old[:2])
    world.run(140)
    assert (world.state(), world.said(SETTLED)[0], world.status().reached) == (SUCCESS, "True", 2)
    world.partition = 0
    world.rest()
    assert world.state() == RUNNING, "it goes on"
    assert world.said(SETTLED) == ("", "")
    world.up(*world.make(2))
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 4)


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet"])
def test_a_partition_that_holds_everything_back_proves_nothing(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.partition = 3
    world.release("v2")
    world.run(500)
    assert (world.state(), world.said(NO_REPLICAS)) == (RUNNING, ("True", "NoPods"))


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_on_delete_the_release_is_what_it_reaches(kind: str) -> None:
    world = World(kind)
    old = world.roll_out("v1")
    world.rolling = False
    world.release("v2")
    world.run(500)
    assert world.said(NO_REPLICAS) == ("True", "NoPods")
    world.remove(old[0])
    world.up(*world.make(1))
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 1)
    world.remove(old[1])
    (bad,) = world.make(1)
    world.rest()
    assert world.state() == RUNNING
    world.up(bad)
    world.run(10)
    assert (world.state(), world.status().reached) == (SUCCESS, 2)


def test_nodes_that_come_and_go_make_and_take_pods() -> None:
    world = World("DaemonSet")
    pods = world.roll_out("v1")
    world.replicas = 2
    world.remove(pods[0])
    world.run(200)
    assert world.state() == SUCCESS
    world.replicas = 3
    world.up(*world.make(1))
    world.run(20)
    assert (world.state(), len(world.batches)) == (SUCCESS, 4)


# batches


@each_kind
def test_a_batch_is_taken_when_it_is_full(kind: str) -> None:
    world = first(kind)
    world.settings = Settings(branch=True, content="2")
    world.rest()
    assert world.stored().spec.count_threshold == 2
    pods = world.make(3)
    world.up(*pods)
    world.run(10)
    (batch,) = world.batches.values()
    assert [info.uid for info in batch.spec.pod_infos] == [pods[0].uid, pods[1].uid]
    assert world.state() == RUNNING


@each_kind
def test_an_incomplete_batch_is_taken_after_its_time(kind: str) -> None:
    world = first(kind)
    world.settings = Settings(branch=True, content="2")
    states = []
    world.write_hook = lambda what: states.append(world.state())
    world.up(*world.make(3))
    world.run(69)
    assert len(world.batches) == 1
    world.run(1)
    assert [len(each.spec.pod_infos) for each in world.batches.values()] == [2, 1]
    assert world.state() == SUCCESS
    assert WorkloadState.TIME_OUT_PRE_THRESHOLD in states


@each_kind
def test_a_suspended_release_takes_incomplete_batches_without_another_state(kind: str) -> None:
    world = first(kind)
    world.settings = Settings(branch=True, content="2")
    states = []
    world.write_hook = lambda what: states.append(world.state())
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(12)
    world.judge(pods[0], "unpass")
    world.up(pods[2])
    world.run(75)
    assert len(world.batches) == 2
    assert world.state() == SUSPEND
    assert WorkloadState.TIME_OUT_PRE_THRESHOLD not in states


@each_kind
def test_a_batch_is_never_larger_than_the_replicas(kind: str) -> None:
    world = first(kind)
    world.settings = Settings(branch=True, content="10")
    world.up(*world.make(3))
    world.run(10)
    assert world.stored().spec.count_threshold == 3
    assert [len(each.spec.pod_infos) for each in world.batches.values()] == [3]


@each_kind
def test_batches_of_pods_long_gone_are_pruned(kind: str) -> None:
    world = World(kind, replicas=1)
    (pod,) = world.roll_out("v1")
    for _ in range(25):
        world.remove(pod)
        (pod,) = world.make(1)
        world.up(pod)
        world.run(12)
    assert len(world.batches) == 21
    numbers = sorted(int(name.rpartition("--x--")[2]) for name in world.batches)
    assert numbers == list(range(6, 27))


# what is on record


@each_kind
def test_a_success_removes_the_records_of_older_versions(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.roll_out("v2")
    assert set(world.releases) == {fingerprint("v2")}


@each_kind
def test_a_success_never_removes_a_newer_record(kind: str) -> None:
    world = first(kind)
    world.up(*world.make(3))
    newer = world.stored()
    metadata = msgspec.structs.replace(newer.metadata, name=newer.metadata.name[:-32] + "9" * 32, uid="newer")
    spec = msgspec.structs.replace(newer.spec, workload_generation=7)
    world.releases["9" * 32] = msgspec.structs.replace(newer, metadata=metadata, spec=spec)
    world.run(200)
    assert world.state() == SUCCESS
    assert "9" * 32 in world.releases


@each_kind
def test_an_orphans_suspension_is_inherited(kind: str) -> None:
    """A workload that was deleted with `--cascade=orphan` and made anew."""
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    since = world.own_labels.pop(labels.SUSPEND)
    orphan = world.stored()
    metadata = msgspec.structs.replace(orphan.metadata, owner_references=())
    world.releases[fingerprint("v1")] = msgspec.structs.replace(orphan, metadata=metadata)
    world.release("v2")
    world.rest()
    assert world.own_labels[labels.SUSPEND] == since
    fresh = world.make(3)
    world.up(*fresh)
    world.remove(*pods)
    world.run(30)
    assert (world.state(), world.suspended) == (SUCCESS, False)


@each_kind
def test_an_orphans_suspension_is_not_inherited_by_what_succeeds_just_then(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    del world.own_labels[labels.SUSPEND]
    orphan = world.stored()
    metadata = msgspec.structs.replace(orphan.metadata, owner_references=())
    world.releases[fingerprint("v1")] = msgspec.structs.replace(orphan, metadata=metadata)
    world.settings = Settings(blocking=False)
    world.release("v2")
    world.up(*world.make(3))
    world.remove(*pods)
    world.run(9.5)
    world.settings = Settings()
    seen: list[str] = []
    world.write_hook = seen.append
    world.advance(1)
    world.groups.refresh(world.workload, world.now) if world.groups is not None else None
    world.settings = Settings(blocking=False)
    world.rest()
    world.settings = Settings()
    world.run(30)
    assert "suspend" not in seen


@each_kind
def test_a_suspended_version_with_an_owner_is_no_orphan(kind: str) -> None:
    """A person took the label off: that is believed."""
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    world.release("v2")
    del world.own_labels[labels.SUSPEND]
    world.rest()
    assert not world.suspended


@each_kind
def test_a_version_on_record_that_never_passed_is_not_gone_back_to(kind: str) -> None:
    world = World(kind)
    world.release("v1")
    world.rest()
    world.up(*world.make(3))
    world.rest()
    world.release("v2")
    world.rest()
    world.make(1)
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert "no older version has passed verification" in found.message


@each_kind
def test_a_closed_record_is_history(kind: str) -> None:
    world, _ = second(kind)
    world.run(121)
    before = world.stored("v2")
    world.remove(*world.of("v2"))
    world.run(500)
    assert world.stored("v2") == before


@each_kind
def test_what_the_record_remembers_is_the_object_and_its_template(kind: str) -> None:
    world, _ = second(kind)
    revision = {"Deployment": "ReplicaSet"}.get(kind, "ControllerRevision")
    expected = SourceRef(revision, "web-v1", "uid-v1", fingerprint("v1"), fingerprint("v1"))
    assert world.status("v1").source == expected
    assert world.status("v2").previous == expected


# writes


@each_kind
def test_at_rest_nothing_is_written_however_often_it_is_looked_at(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    before = world.writes
    for _ in range(5):
        world.advance(500)
        assert not world.reconcile()
    world.die()
    world.run(100)
    assert world.writes == before


@each_kind
def test_a_verified_pod_costs_few_writes(kind: str) -> None:
    world = first(kind, replicas=100)
    before = world.writes
    world.up(*world.make(100))
    world.run(200)
    assert world.state() == SUCCESS
    assert world.writes - before <= 3 * 100 + 10


@each_kind
def test_lists_are_brought_up_to_date_now_and_then(kind: str) -> None:
    world = first(kind, replicas=40)
    pods = world.make(40)
    world.rest()
    written: list[float] = []
    world.write_hook = lambda what: written.append(world.t) if what == "status" else None
    for pod in pods:
        world.up(pod)
        world.run(1)
    world.run(9)
    assert world.state() == SUCCESS
    assert len(world.status().defense_check_pass_pods) == 40
    assert len(written) <= 12, written


@each_kind
def test_a_failure_is_written_at_once(kind: str) -> None:
    world = first(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    world.judge(pods[1], "unpass")
    world.rest()
    assert {failed.uid for failed in world.status().defense_check_fail_pods} == {pods[0].uid, pods[1].uid}


@each_kind
def test_a_little_progress_can_wait(kind: str) -> None:
    world = first(kind, replicas=10)
    pods = world.make(10)
    world.rest()
    world.up(pods[0])
    world.run(50)
    assert (len(world.batches), world.status().defense_check_pass_pods) == (1, ())
    world.run(15)
    assert infos(world.status().defense_check_pass_pods) == [pods[0].name]


def test_a_huge_workload_is_listed_in_part_and_counted_in_full() -> None:
    world = World("Deployment", replicas=3000)
    world.settings = Settings(branch=True, content="1000")
    world.release("v1")
    world.rest()
    pods = world.make(3000)
    world.up(*pods)
    world.run(20)
    assert world.state() == SUCCESS
    status = world.status()
    assert len(status.defense_check_pass_pods) == 2000
    assert len(msgspec.json.encode(status)) < 1_000_000
    found = world.condition(VERIFIED)
    assert found is not None
    assert found.message == "3000 of 3000 pods passed"


@each_kind
def test_the_pods_of_a_batch_are_told_as_users_expect(kind: str) -> None:
    world = first(kind)
    (pod, *_) = world.make(3)
    world.up(pod)
    world.run(10)
    (batch,) = world.batches.values()
    assert batch.spec.pod_infos == (
        PodInfo(
            pod=pod.name,
            uid=pod.uid,
            app="web",
            host_name=pod.name,
            namespace=NAMESPACE,
            work_space="default",
            ip="10.0.0.1",
        ),
    )
    assert rfc3339(batch.spec.create_time_unix) == rfc3339(world.now)
