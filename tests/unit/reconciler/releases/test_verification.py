"""Verdicts about pods, and labels of pods that are not trusted."""

from dataclasses import replace

import msgspec
import pytest

from altershield.api import labels, names
from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.condition_types import Giver
from altershield.api.meta import Condition, find_condition
from reconciler.cluster import release as projection
from reconciler.cluster.release import Release
from reconciler.releases.decisions.decide import decide

from .scenarios import (
    RUNNING,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    first_release,
    first_release_up,
    is_restored,
    second_release,
)
from .world import World, fingerprint, infos


def test_verdict_of_a_person_counts_after_the_release_settled(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[1])
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.PERSON)
    (failed,) = world.status().defense_check_fail_pods
    assert (failed.pod, failed.message) == (pods[1].name, "find error")
    assert world.own_labels[labels.SUSPEND] == str(int(world.now))
    world.judge(pods[1], "pass")
    world.rest()
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert world.reasons == ["ReleaseSuspended", "ReleaseResumed"]


def test_down_pod_gets_the_start_timeout_when_its_failed_verdict_is_removed(kind: str) -> None:
    """The new leader has not seen the pod up."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[1])
    world.die()
    world.touch(pods[1].lose_readiness(world.t))
    world.run(10)
    world.judge(pods[1], "")
    world.run(10)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.up(pods[1])
    world.run(60)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_verdict_stays_when_its_change_pod_is_deleted(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[1])
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
    assert (world.state(), world.suspended) == (SUCCESS, False), "the corrected verdict stays"


def test_pod_that_failed_after_it_passed_stays_failed_when_its_failing_change_pod_is_deleted(kind: str) -> None:
    """The pod comes up late. Its older ChangePod, in which it passed, does not count."""
    world, pods = first_release_up(kind)
    world.run(60)
    world.touch(pods[0].crash(world.t))
    world.run(121)
    world.up(pods[0])
    world.run(60)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    newest = max(world.batches, key=names.change_pod_number)
    del world.batches[newest]
    world.groups = None
    world.run(60)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    world.judge(pods[0], "pass")
    world.run(60)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_verdict_is_dropped_when_its_pod_and_its_change_pod_are_deleted(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[1])
    world.remove(pods[1])
    world.batches.clear()
    world.groups = None
    world.make_up(1)
    world.run(60)
    assert (world.state(), world.suspended) == (SUCCESS, False)


@pytest.mark.parametrize("verdict", ["fail", "PASS", "x"])
def test_every_verdict_other_than_pass_fails_the_pod(kind: str, verdict: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], verdict)
    world.rest()
    assert world.state() == SUSPEND


def test_pod_passed_by_a_person_but_not_up_stalls_the_release_and_is_not_failed_again(kind: str) -> None:
    """The release does not succeed before the pod is up, and its condition says what it waits for."""
    world = first_release(kind)
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
    assert world.said(STALLED) == ("True", "PodsOverdue"), "the next leader knows that the pod was never up"
    world.up(pods[0])
    world.run(10)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_verdict_does_not_apply_to_a_new_pod_of_the_same_name() -> None:
    world = first_release("StatefulSet", replicas=1)
    (pod,) = world.make_up(1, number=0)
    world.run(15)
    world.fail(pod)
    world.remove(pod)
    (recreated,) = world.make(1, number=0)
    assert recreated.name == pod.name
    world.rest()
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.up(recreated)
    world.run(9)
    assert world.suspended
    world.run(1)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert len(world.batches) == 2


def test_recreated_pod_is_listed_by_name_if_the_old_pod_is_deleted_later() -> None:
    world = first_release("StatefulSet", replicas=1)
    (pod,) = world.make(1, number=0)
    world.rest()
    (recreated,) = world.make(1, number=0)
    world.remove(pod)
    world.up(recreated)
    world.run(10)
    assert world.state() == SUCCESS
    assert infos(world.status().defense_check_pass_pods) == [recreated.name]


def test_pods_added_after_success_are_verified_while_the_state_stays_success(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.replicas = 4
    world.make_up(1)
    world.run(9)
    assert (world.state(), len(world.batches)) == (SUCCESS, 3)
    world.run(1)
    assert (world.state(), len(world.batches)) == (SUCCESS, 4)


def test_forged_version_label_of_a_pod_is_ignored_and_restored(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    for forged in (fingerprint("v2"), ""):
        pods[0].pod_labels[labels.VERSION] = forged
        world.touch(pods[0])
        world.rest()
        assert (world.state(), world.suspended) == (SUSPEND, True)
        assert pods[0].pod_labels[labels.VERSION] == fingerprint("v1"), "the label is restored"


def test_version_label_of_a_pod_is_not_restored_if_the_selector_uses_it() -> None:
    world = first_release("Deployment")
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


def test_failed_pod_stays_failed_after_its_owner_reference_changes(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    pods[0].owner = {**pods[0].owner, "uid": "another"}
    pods[0].pod_labels[labels.CONTROLLER_REVISION_HASH] = "another"
    world.touch(pods[0])
    world.run(60)
    assert (world.state(), world.suspended) == (SUSPEND, True)


@pytest.mark.parametrize("offset", [-1000, 1000, None])
def test_implausible_operate_finished_label_is_ignored_and_rewritten(kind: str, offset: float | None) -> None:
    world = first_release(kind)
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


def test_pod_with_an_operate_finished_label_from_its_template_is_overdue_if_not_up(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    pod.pod_labels[labels.OPERATE_FINISHED] = str(int(world.now))
    world.touch(pod)
    world.run(121)
    assert is_restored(world)


# with an AlterShield server


def current(world: World) -> Release:
    """The current release, as the cache holds it."""
    return projection.read(msgspec.json.encode(world.releases[world.version]))


def test_release_whose_order_the_server_refuses_fails_and_verifies_no_pod() -> None:
    world = first_release("Deployment")
    world.make_up(world.replicas)
    workload = world.workload
    release = current(world)
    refused = Condition("Reported", "False", "OrderRefused", "no such scene")
    snapshot = replace(world.snapshot(release, [], workload), reported=refused)
    decision = decide(snapshot, world.now)
    assert decision.status is not None
    assert decision.status.status == "Failed"
    assert (decision.before, [type(each).__name__ for each in decision.after]) == ((), ["Announce"])
    assert decide(replace(snapshot, reported=None), world.now).status != decision.status


def test_success_tells_pods_that_passed_without_a_verdict() -> None:
    world = first_release("Deployment")
    world.roll_out("v1")
    snapshot = replace(world.snapshot(current(world), [], world.workload), checked=True, pods_read=True)
    entering = replace(
        snapshot, release=msgspec.structs.replace(snapshot.release, status=ChangeWorkloadStatus(status=RUNNING))
    )
    status = decide(entering, world.now).status
    assert status is not None
    checked = find_condition(status.conditions, "Checked")
    assert checked is not None
    assert (status.status, checked.status, checked.reason) == (SUCCESS, "False", "NotChecked")
