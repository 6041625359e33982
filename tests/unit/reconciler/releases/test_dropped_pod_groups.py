"""Verdicts stay right although the reconciler drops the pod groups of releases at rest, as
`PodGroupsCache.evict_rebuildable` does, or a new leader builds them again."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.pod_verdicts import PodInfo
from altershield.workloads.pods import Fault
from reconciler.releases.pods.health import CLOCK_SKEW, events_fault

from .world import KINDS, SimPod, World

SUCCESS, SUSPEND, RUNNING = WorkloadState.SUCCESS, WorkloadState.SUSPEND, WorkloadState.RUNNING
STALLED, SETTLED = ConditionType.STALLED, ConditionType.SETTLED


class DroppingWorld(World):
    """Drops the pod groups when nothing is due."""

    def _reconcile_release(self) -> None:
        super()._reconcile_release()
        if (
            self.decision.requeue_after is None
            and self.groups is not None
            and self.groups.rebuildable
            and len(self.groups) < 100
        ):
            self.groups = None


def releasing(kind: str = "Deployment", **world: Any) -> tuple[DroppingWorld, list[SimPod], SimPod]:
    """The second release of a workload; one of its pods exists."""
    made = DroppingWorld(kind, **world)
    old = made.roll_out("v1")
    made.begin("v2")
    (pod,) = made.make(1)
    made.rest()
    return made, old, pod


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("Deployment", "StatefulSet")])
@pytest.mark.parametrize("restarted", [False, True], ids=["", "by-a-new-leader"])
def test_start_timeout_of_a_pod_restarts_when_its_node_is_ready_again(kind: str, restarted: bool) -> None:
    world, _, pod = releasing(kind)
    pod.node = "node-9"
    world.touch(pod)
    world.run(5)
    world.lose_node("node-9")
    world.run(300)
    assert world.said(STALLED) == ("True", Fault.NODE_NOT_READY)
    if restarted:
        world.die()
    world.lost_nodes.discard("node-9")
    pod.message = "its containers are started again"
    world.touch(pod)
    world.run(60)
    assert world.image == "v2"
    assert world.state("v2") == RUNNING
    world.run(100)
    assert world.image == "v1", "the release ends if the pod does not come up in that time"


@pytest.mark.parametrize("skew", [-100, 0, 299])
def test_new_leader_restarts_the_start_timeout_of_pods_on_a_node_that_just_became_ready(skew: int) -> None:
    world, _, pod = releasing()
    pod.node = "node-9"
    world.touch(pod)
    world.run(5)
    world.lose_node("node-9")
    world.run(110)
    world.die()
    world.node_clock = skew
    world.find_node("node-9")
    world.run(60)
    assert (world.image, world.state("v2")) == ("v2", RUNNING)
    world.run(65 + CLOCK_SKEW + skew)
    assert world.image == "v1", "the release ends if the pod does not come up in that time"


def test_new_leader_does_not_restart_the_start_timeout_if_the_node_was_ready_before_the_pod() -> None:
    world, _, pod = releasing()
    pod.node = "node-9"
    world.touch(pod)
    world.found_nodes["node-9"] = pod.born - 10
    world.run(100)
    world.die()
    world.run(25)
    assert world.image == "v1"


def test_recovered_node_is_noticed_although_no_pod_changes() -> None:
    world, _, pod = releasing()
    pod.node = "node-9"
    world.touch(pod)
    world.lose_node("node-9")
    world.run(300)
    world.lost_nodes.discard("node-9")
    world.run(40)
    assert world.said(STALLED)[1] != Fault.NODE_NOT_READY
    world.run(130)
    assert world.image == "v1"


def test_volume_that_is_attached_late_causes_no_rollback() -> None:
    world, _, pod = releasing()
    world.touch(pod.be_created())
    world.events_say = Fault.VOLUME
    world.run(360)
    assert world.said(STALLED, "v2") == ("True", Fault.VOLUME)
    pod.creating = False
    pod.phase = "Running"
    world.touch(pod)
    world.run(60)
    assert world.image == "v2"


def test_pod_that_does_not_start_after_its_volume_was_attached_causes_a_rollback() -> None:
    """Nothing in the pod changes when the volume is attached: only its Events tell."""
    world, _, pod = releasing()
    world.touch(pod.be_created())
    world.events_say = Fault.VOLUME
    world.run(300)
    written = world.writes
    world.run(600)
    assert (world.said(STALLED, "v2"), world.writes) == (("True", Fault.VOLUME), written)
    world.events_say = None
    world.run(120)
    assert world.image == "v2", "the start timeout begins again"
    world.run(130)
    assert world.image == "v1"


def test_pods_that_fail_and_are_replaced_repeatedly_end_the_release() -> None:
    world, _, pod = releasing()
    for _ in range(6):
        world.run(30)
        pod.phase = "Failed"
        world.touch(pod)
        (pod,) = world.make(1)
        world.rest()
    world.run(10)
    assert world.image == "v1"


def test_pods_that_fail_after_they_were_up_keep_a_successful_release_from_settling() -> None:
    world, old, pod = releasing(replicas=1)
    world.up(pod)
    world.remove(*old)
    for _ in range(8):
        world.run(60)
        pod.phase = "Failed"
        world.touch(pod.lose_readiness(world.t))
        (pod,) = world.make(1)
        world.up(pod)
        world.rest()
        assert world.said(SETTLED)[0] != "True"


def test_verdicts_without_pod_uids_stay_valid_for_a_new_leader() -> None:
    world, old, pod = releasing(replicas=1)
    world.up(pod)
    world.remove(*old)
    world.run(20)
    world.fail(pod)
    assert world.state() == SUSPEND
    for name, batch in list(world.batches.items()):
        spec = msgspec.structs.replace(batch.spec, pod_infos=tuple(map(without_uid, batch.spec.pod_infos)))
        results = tuple(map(without_uid, batch.status.pod_results))
        status = msgspec.structs.replace(batch.status, pod_results=results)
        world.batches[name] = msgspec.structs.replace(batch, spec=spec, status=status)
    world.die()
    world.run(60)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def without_uid(info: PodInfo) -> PodInfo:
    return msgspec.structs.replace(info, uid="")


def test_pod_that_is_still_ready_after_an_update_in_place_is_observed() -> None:
    world = DroppingWorld("CloneSet", replicas=1)
    (pod,) = world.roll_out("v1")
    world.run(4000)
    world.own_labels[labels.SUSPEND] = "1"
    world.begin("bad")
    pod.image = "bad"
    pod.pod_labels[labels.CONTROLLER_REVISION_HASH] = world.revisions["bad"]["metadata"]["name"]
    pod.pod_labels[labels.VERSION] = world._version_in("bad")
    world.touch(pod)
    world.rest()
    assert world.state() == RUNNING
    world.advance(2)
    world.touch(pod.crash(world.t))
    world.run(200)
    assert world.state() != SUCCESS
    assert world.suspended


def test_successful_release_without_a_settled_condition_counts_as_settled() -> None:
    world = DroppingWorld("Deployment")
    pods = world.roll_out("v1")
    world.run(5000)
    kept = tuple(each for each in world.status().conditions if each.type != SETTLED)
    world.edit_status(conditions=kept, settle_time_unix=0, down_pods=())
    world.touch(pods[0].crash(world.t))
    world.die()
    world.run(300)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_stalled_condition_is_written_once_while_the_release_stays_stalled() -> None:
    world = DroppingWorld("Deployment", replicas=10)
    world.roll_out("v1")
    world.begin("v2")
    pods = world.make(10)
    world.up(*pods[1:])
    world.touch(pods[0].crash(world.t))
    world.run(200)
    assert world.said(STALLED, "v2")[0] == "True"
    written = world.status("v2")
    world.run(3600)
    assert world.status("v2").conditions == written.conditions


MISSING = ("FailedMount", 'MountVolume.SetUp failed for volume "cfg" : configmap "x" not found', 1.0)
UNMOUNTED = ("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[cfg]: timed out", 1.0)


def test_missing_config_map_is_a_fault_of_the_release_although_other_events_blame_the_cluster() -> None:
    assert events_fault([MISSING, UNMOUNTED]) is None
    assert events_fault([UNMOUNTED]) is Fault.VOLUME
    assert events_fault([("FailedCreatePodSandBox", "no network", 1.0)]) is Fault.SANDBOX
    assert events_fault([]) is None


def test_refused_rollback_request_does_not_allow_a_second_automatic_rollback() -> None:
    world, _, pod = releasing()
    world.touch(pod.crash(world.t))
    world.run(130)
    assert world.image == "v1"
    world.begin("v2")
    world.ask_rollback("nowhere")
    world.rest()
    pods = world.make(1)
    pods[0].crash(world.t)
    world.touch(*pods)
    world.run(130)
    assert world.image == "v2", "v2 is suspended, not rolled back a second time"
    assert world.state("v2") == SUSPEND
