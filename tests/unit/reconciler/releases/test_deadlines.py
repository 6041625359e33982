"""Pods that are not up within the start timeout."""

import msgspec
import pytest

from altershield.api.change_pod import ChangePod, ChangePodStatus
from altershield.api.change_workload import ChangeWorkload
from altershield.api.condition_types import Giver
from altershield.api.ops_config import Settings
from kube_base.times import rfc3339

from .scenarios import (
    FAILED,
    ROLLED_BACK,
    RUNNING,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    first_release,
    is_restored,
    second_release,
)
from .world import World, fingerprint


def test_pod_not_up_within_the_start_timeout_causes_a_rollback(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.touch(pod.wait_for_image())
    world.run(119)
    assert world.state() == RUNNING
    world.run(1)
    assert is_restored(world)
    assert world.state("v2") == FAILED
    status = world.status("v2")
    assert status.rollback_to == fingerprint("v1")
    found = world.condition(ROLLED_BACK, "v2")
    assert found is not None
    assert (found.status, found.reason) == ("True", "PodNotUp")
    assert (
        f'pod {pod.name} is not up after 120 s: container main: ImagePullBackOff: Back-off pulling image "busybo"'
        in found.message
    )
    assert found.message.endswith(f" was released again at {rfc3339(world.now)}"), "denials quote the message"
    assert world.reasons[-2:] == ["RollbackStarted", "RolledBack"]
    assert world.looks > 0


def test_pod_not_up_suspends_a_first_release_and_the_message_quotes_the_pod(kind: str) -> None:
    world = first_release(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.touch(pods[2].wait_for_image())
    world.run(119)
    assert world.state() == RUNNING
    assert len(world.status().defense_check_pass_pods) == 2
    assert world.status().down_pods == (), "the pod was never up"
    world.run(1)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    (failed,) = world.status().defense_check_fail_pods
    assert (failed.pod, failed.verdict) == (pods[2].name, "unpass")
    assert failed.message == 'not up after 120 s: container main: ImagePullBackOff: Back-off pulling image "busybo"'
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)
    assert world.message(VERIFIED).startswith(f"1 of 3 pods failed verification: {pods[2].name} (not up after 120 s")
    assert world.reasons[-1] == "ReleaseSuspended"
    assert world.rest() == 0
    assert not world.run(1000)


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_objects_about_thousands_of_overdue_pods_fit_into_etcd(kind: str) -> None:
    world, sizes, store, store_batch = World(kind, replicas=2000), [0], World._store, World._store_batch

    def stored(self: World, release: ChangeWorkload) -> None:
        sizes.append(len(msgspec.json.encode(release)))
        store(self, release)

    def stored_batch(self: World, batch: ChangePod, status: ChangePodStatus) -> None:
        sizes.append(len(msgspec.json.encode(msgspec.structs.replace(batch, status=status))))
        store_batch(self, batch, status)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "_store", stored)
        patch.setattr(World, "_store_batch", stored_batch)
        world.begin("v1")
        pods = world.make(2000)
        for pod in pods:
            pod.name = f"{pod.name}-{'x' * 50}"
            pod.waiting, pod.phase = ("ImagePullBackOff", "找不到镜像" * 60), "Pending"
        world.touch(*pods)
        world.run(121)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.message(VERIFIED).startswith("2000 of 2000 pods failed verification")
    assert max(sizes) < 1.4 * 2**20
    assert all(len(each.spec.pod_infos) == len(each.status.pod_results) for each in world.batches.values())


def test_start_timeout_counts_from_when_the_pod_was_last_up(kind: str) -> None:
    world = first_release(kind)
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


def test_pod_that_is_repeatedly_ready_without_staying_up_is_overdue(kind: str) -> None:
    world = first_release(kind)
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


def test_new_leader_continues_the_start_timeout_of_a_down_pod(kind: str) -> None:
    world = first_release(kind)
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


@pytest.mark.parametrize("verdict", ["", "pass"])
def test_start_timeout_of_a_pod_that_broke_without_a_leader_starts_when_a_leader_sees_it(
    kind: str, verdict: str
) -> None:
    world = first_release(kind)
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


def test_start_timeout_restarts_for_a_pod_that_a_new_leader_finds_ready(kind: str) -> None:
    world, (pod,) = second_release(kind)
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


def test_one_overdue_pod_of_ten_stalls_the_release_and_two_cause_a_rollback(kind: str) -> None:
    world, pods = second_release(kind, 10, replicas=10)
    world.up(*pods[1:])
    world.touch(pods[0].crash(world.t))
    world.run(121)
    assert world.state() == RUNNING
    assert world.said(STALLED) == ("True", "PodsOverdue")
    assert world.message(STALLED).startswith(
        f"1 of 10 pods are overdue, too few to end the release: pod {pods[0].name} is not up"
    )
    assert world.reasons.count("ReleaseStalled") == 1
    assert world.rest() == 0
    world.touch(pods[1].crash(world.t))
    world.run(121)
    assert is_restored(world)


@pytest.mark.parametrize(
    ("share", "bad", "ends"),
    [("20%", 1, False), ("20%", 2, True), ("3", 2, False), ("3", 3, True), ("1", 1, True), ("1%", 1, True)],
)
def test_share_setting_is_the_number_of_overdue_pods_that_end_the_release(
    kind: str, share: str, bad: int, ends: bool
) -> None:
    world, pods = second_release(kind, 10, replicas=10)
    world.settings = Settings(share=share)
    world.up(*pods[bad:])
    world.run(121)
    assert is_restored(world) is ends


def test_share_setting_is_relative_to_the_pods_that_exist(kind: str) -> None:
    world, _ = second_release(kind, 1, replicas=10)
    world.run(121)
    assert is_restored(world)
