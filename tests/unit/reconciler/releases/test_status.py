"""What is stored about a release, and how often it is written."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, Resumption, SourceRef
from altershield.api.ops_config import Settings
from altershield.api.pod_verdicts import PodInfo
from reconciler.releases.pods.group import Group
from reconciler.releases.terms.draft import LISTED_FAILED, LISTS_INTERVAL, with_lists

from .scenarios import SUCCESS, VERIFIED, first_release, second_release
from .world import World, fingerprint, infos

OBSERVE = 10  # seconds for which a pod of the world is observed


def test_success_removes_change_workloads_of_older_versions(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.roll_out("v2")
    assert set(world.releases) == {fingerprint("v2")}


def test_success_keeps_the_change_workload_of_a_newer_release(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    newer = world.stored()
    metadata = msgspec.structs.replace(newer.metadata, name=newer.metadata.name[:-32] + "9" * 32, uid="newer")
    spec = msgspec.structs.replace(newer.spec, workload_generation=7)
    world.releases["9" * 32] = msgspec.structs.replace(newer, metadata=metadata, spec=spec)
    world.run(200)
    assert world.state() == SUCCESS
    assert "9" * 32 in world.releases


def test_change_workload_of_a_finished_rollback_does_not_change(kind: str) -> None:
    world, _ = second_release(kind)
    world.run(121)
    before = world.stored("v2")
    world.remove(*world.of("v2"))
    world.run(500)
    assert world.stored("v2") == before


def test_status_names_the_revision_and_its_template_fingerprint(kind: str) -> None:
    world, _ = second_release(kind)
    revision = {"Deployment": "ReplicaSet"}.get(kind, "ControllerRevision")
    expected = SourceRef(revision, "web-v1", "uid-v1", fingerprint("v1"), fingerprint("v1"))
    assert world.status("v1").source == expected
    assert world.status("v2").previous == expected


def test_settled_release_causes_no_writes(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    before = world.writes
    for _ in range(5):
        world.advance(500)
        assert not world.reconcile()
    world.die()
    world.run(100)
    assert world.writes == before


def test_verified_pod_causes_at_most_three_writes(kind: str) -> None:
    world = first_release(kind, replicas=100)
    before = world.writes
    world.make_up(100)
    world.run(200)
    assert world.state() == SUCCESS
    assert world.writes - before <= 3 * 100 + 10


def test_pod_lists_in_the_status_are_written_at_intervals(kind: str) -> None:
    world = first_release(kind, replicas=40)
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


def test_failed_verdict_is_written_immediately(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    world.fail(pods[1])
    assert {failed.uid for failed in world.status().defense_check_fail_pods} == {pods[0].uid, pods[1].uid}


def test_lists_show_a_pod_that_passed_five_seconds_later(kind: str) -> None:
    world = first_release(kind, replicas=10)
    pods = world.make(10)
    world.rest()
    for number, pod in enumerate(pods[:4]):
        before = world.status().defense_check_pass_pods
        world.up(pod)
        world.run(OBSERVE)
        assert len(world.batches) == number + 1
        world.run(LISTS_INTERVAL - 1)
        assert world.status().defense_check_pass_pods == before
        world.run(1)
        assert infos(world.status().defense_check_pass_pods) == sorted(each.name for each in pods[: number + 1])
        world.run(number * 7)


@pytest.mark.parametrize(("replicas", "gap"), [(1, 0), (3, 6), (5, 0), (5, 2), (5, 20), (10, 5), (60, 1), (100, 0.1)])
def test_verified_pod_causes_at_most_four_writes_however_slowly_pods_come_up(
    kind: str, replicas: int, gap: float
) -> None:
    world = first_release(kind, replicas=replicas)
    pods = world.make(replicas)
    world.rest()
    for pod in pods:
        world.up(pod)
        world.run(gap)
    world.run(200)
    assert world.state() == SUCCESS
    assert len(world.status().defense_check_pass_pods) == replicas
    assert world.writes <= 4 * replicas + 6, "6: the writes of each release"


def test_lists_of_a_large_release_are_written_less_often() -> None:
    world = first_release("Deployment", replicas=400)
    pods = world.make(400)
    world.rest()
    written: list[float] = []
    world.write_hook = lambda what: written.append(world.t) if what == "status" else None
    for pod in pods:
        world.up(pod)
        world.run(0.25)
    world.run(OBSERVE)
    assert len(world.status().defense_check_pass_pods) == 400
    gaps = [after - before for before, after in pairwise(written[:-1])]
    assert min(gaps) >= LISTS_INTERVAL
    assert gaps[-1] >= 3 * LISTS_INTERVAL


def test_failure_that_is_written_at_once_includes_the_lists(kind: str) -> None:
    world = first_release(kind, replicas=4)
    pods = world.make(4)
    world.rest()
    world.up(*pods[:2])
    world.run(OBSERVE)
    world.fail(pods[0])
    assert infos(world.status().defense_check_pass_pods) == [pods[1].name]


def test_lists_are_written_after_a_crash_once_pods_were_observed_again(kind: str) -> None:
    world = first_release(kind, replicas=4)
    pods = world.make(4)
    world.rest()
    world.up(pods[0])
    world.run(OBSERVE)
    world.die()
    world.run(OBSERVE + LISTS_INTERVAL)
    assert infos(world.status().defense_check_pass_pods) == [pods[0].name]


def test_status_of_a_large_workload_lists_part_of_the_pods_and_counts_all() -> None:
    world = World("Deployment", replicas=3000)
    world.settings = Settings(branch=True, content="1000")
    world.begin("v1")
    world.make_up(3000)
    world.run(20)
    assert world.state() == SUCCESS
    status = world.status()
    assert len(status.defense_check_pass_pods) == 2000
    assert len(msgspec.json.encode(status)) < 1_000_000
    assert world.message(VERIFIED) == "3000 of 3000 pods passed"


def test_status_with_the_longest_names_and_reasons_fits_into_etcd() -> None:
    pod = PodInfo(pod="p" * 63, uid="u" * 36, app="a" * 253, host_name="p" * 63, namespace="n" * 63, ip="1" * 39)
    pods = [msgspec.structs.replace(pod, pod=f"{number:063}", work_space="default") for number in range(3000)]
    failed = [msgspec.structs.replace(each, verdict="unpass", message="验" * 200) for each in pods[:LISTED_FAILED]]
    before = ChangeWorkloadStatus(
        defense_check_fail_pods=tuple(failed), resumption=Resumption(since_unix=1, pods=("u" * 36,) * 10_000)
    )
    tracked = [
        SimpleNamespace(pod=SimpleNamespace(metadata=SimpleNamespace(name=each.pod)), info=each) for each in pods
    ]
    groups = SimpleNamespace(
        pods_in=lambda group: tracked if group is Group.PASSED else [], info=lambda each: each.info
    )
    status = with_lists(before, cast(Any, groups))
    assert 0 < len(status.defense_check_pass_pods) < len(pods)
    assert len(msgspec.json.encode(status)) < 1.3 * 2**20
