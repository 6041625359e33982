"""Which pods form a batch, and when the batch is created."""

from altershield.api.change_workload import WorkloadState
from altershield.api.ops_config import Settings
from altershield.api.pod_verdicts import PodInfo
from kube_base.times import rfc3339

from .scenarios import RUNNING, SUCCESS, SUSPEND, first_release
from .world import NAMESPACE, World


def test_batch_is_created_when_it_is_full(kind: str) -> None:
    world = first_release(kind)
    world.settings = Settings(branch=True, content="2")
    world.rest()
    assert world.stored().spec.count_threshold == 2
    pods = world.make_up(3)
    world.run(10)
    (batch,) = world.batches.values()
    assert [info.uid for info in batch.spec.pod_infos] == [pods[0].uid, pods[1].uid]
    assert world.state() == RUNNING


def test_incomplete_batch_is_created_after_the_wait_time(kind: str) -> None:
    world = first_release(kind)
    world.settings = Settings(branch=True, content="2")
    states = []
    world.write_hook = lambda what: states.append(world.state())
    world.make_up(3)
    world.run(69)
    assert len(world.batches) == 1
    world.run(1)
    assert [len(each.spec.pod_infos) for each in world.batches.values()] == [2, 1]
    assert world.state() == SUCCESS
    assert WorkloadState.TIME_OUT_PRE_THRESHOLD in states


def test_suspended_release_creates_incomplete_batches_and_stays_suspended(kind: str) -> None:
    world = first_release(kind)
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


def test_batch_size_is_at_most_the_number_of_replicas(kind: str) -> None:
    world = first_release(kind)
    world.settings = Settings(branch=True, content="10")
    world.make_up(3)
    world.run(10)
    assert world.stored().spec.count_threshold == 3
    assert [len(each.spec.pod_infos) for each in world.batches.values()] == [3]


def test_oldest_batches_of_deleted_pods_are_removed(kind: str) -> None:
    world = World(kind, replicas=1)
    (pod,) = world.roll_out("v1")
    for _ in range(25):
        world.remove(pod)
        (pod,) = world.make_up(1)
        world.run(12)
    assert len(world.batches) == 21
    numbers = sorted(int(name.rpartition("--x--")[2]) for name in world.batches)
    assert numbers == list(range(6, 27))


def test_change_pod_lists_the_fields_of_its_pods(kind: str) -> None:
    world = first_release(kind)
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
