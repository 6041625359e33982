"""Releases that nobody watches all the time: what a reconciler has forgotten, has not seen or is not told of leads to
no wrong verdict. Books of releases at rest are dropped, as `Books.rest` does."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.kinds import ConditionType, PodInfo, WorkloadState
from altershield.workloads.pods import Fault
from reconciler.releases.health import CLOCK_SKEW, events_fault

from .world import KINDS, SimPod, World

SUCCESS, SUSPEND, RUNNING = WorkloadState.SUCCESS, WorkloadState.SUSPEND, WorkloadState.RUNNING
STALLED, SETTLED = ConditionType.STALLED, ConditionType.SETTLED


class Forgetful(World):
    def _reconcile_release(self) -> None:
        super()._reconcile_release()
        if (
            self.decision.requeue_after is None
            and self.groups is not None
            and self.groups.rebuildable
            and len(self.groups) < 100
        ):
            self.groups = None


def releasing(kind: str = "Deployment", **world: Any) -> tuple[Forgetful, list[SimPod], SimPod]:
    """A second release of which one pod was made."""
    made = Forgetful(kind, **world)
    old = made.roll_out("v1")
    made.release("v2")
    made.rest()
    pod = made.make(1)[0]
    made.rest()
    return made, old, pod


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("Deployment", "StatefulSet")])
@pytest.mark.parametrize("restarted", [False, True], ids=["", "by-a-new-leader"])
def test_a_pod_whose_node_comes_back_has_its_time_anew(kind: str, restarted: bool) -> None:
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
    assert world.image == "v1", "and ends if it does not use it"


@pytest.mark.parametrize("skew", [-100, 0, 299])
def test_a_leader_that_begins_just_as_a_node_comes_back_gives_its_pods_their_time_anew(skew: int) -> None:
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
    assert world.image == "v1", "and ends if it does not use it"


def test_a_new_leader_gives_no_time_anew_to_pods_of_a_node_that_was_ready_before_them() -> None:
    world, _, pod = releasing()
    pod.node = "node-9"
    world.touch(pod)
    world.found_nodes["node-9"] = pod.born - 10
    world.run(100)
    world.die()
    world.run(25)
    assert world.image == "v1"


def test_that_a_node_is_back_is_seen_although_no_pod_changes() -> None:
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


def test_a_volume_that_is_attached_late_undoes_nothing() -> None:
    world, _, pod = releasing()
    pod.be_created()
    world.touch(pod)
    world.events_say = Fault.VOLUME
    world.run(360)
    assert world.said(STALLED, "v2") == ("True", Fault.VOLUME)
    pod.creating = False
    pod.phase = "Running"
    world.touch(pod)
    world.run(60)
    assert world.image == "v2"


def test_pods_that_end_and_are_made_anew_again_and_again_end_the_release() -> None:
    world, _, pod = releasing()
    for _ in range(6):
        world.run(30)
        pod.phase = "Failed"
        world.touch(pod)
        pod = world.make(1)[0]
        world.rest()
    world.run(10)
    assert world.image == "v1"


def test_pods_that_end_by_themselves_after_they_were_up_keep_a_success_from_settling() -> None:
    world, old, pod = releasing(replicas=1)
    world.up(pod)
    world.remove(*old)
    for _ in range(8):
        world.run(60)
        pod.phase = "Failed"
        pod.lose_readiness(world.t)
        world.touch(pod)
        pod = world.make(1)[0]
        world.up(pod)
        world.rest()
        assert world.said(SETTLED)[0] != "True"


def test_verdicts_from_before_uids_were_noted_hold_for_a_new_leader() -> None:
    world, old, pod = releasing(replicas=1)
    world.up(pod)
    world.remove(*old)
    world.run(20)
    world.judge(pod, "unpass")
    world.rest()
    assert world.state() == SUSPEND
    for name, batch in list(world.batches.items()):
        spec = msgspec.structs.replace(batch.spec, pod_infos=tuple(map(without_uid, batch.spec.pod_infos)))
        results = tuple(map(without_uid, batch.status.pod_results))
        status = msgspec.structs.replace(batch.status, pod_results=results)
        world.batches[name] = msgspec.structs.replace(batch, spec=spec, status=status)
    world.die()
    world.run(60)
    assert world.state() == SUSPEND
    assert world.suspended


def without_uid(info: PodInfo) -> PodInfo:
    return msgspec.structs.replace(info, uid="")


def test_a_pod_that_is_still_ready_just_after_an_update_in_place_is_observed() -> None:
    world = Forgetful("CloneSet", replicas=1)
    (pod,) = world.roll_out("v1")
    world.run(4000)
    world.own_labels[labels.SUSPEND] = "1"
    world.release("bad")
    world.rest()
    pod.image = "bad"
    pod.pod_labels[labels.CONTROLLER_REVISION_HASH] = world.revisions["bad"]["metadata"]["name"]
    pod.pod_labels[labels.VERSION] = world._version_in("bad")
    world.touch(pod)
    world.rest()
    assert world.state() == RUNNING
    world.advance(2)
    pod.crash(world.t)
    world.touch(pod)
    world.run(200)
    assert world.state() != SUCCESS
    assert world.suspended


def test_a_success_from_before_it_was_said_whether_it_settled_is_history() -> None:
    world = Forgetful("Deployment")
    pods = world.roll_out("v1")
    world.run(5000)
    kept = tuple(each for each in world.status().conditions if each.type != SETTLED)
    world.edit_status(conditions=kept, settle_time_unix=0, down_pods=())
    pods[0].crash(world.t)
    world.touch(pods[0])
    world.die()
    world.run(300)
    assert world.state() == SUCCESS
    assert not world.suspended


def test_a_stall_is_written_once_however_long_it_lasts() -> None:
    world = Forgetful("Deployment", replicas=10)
    world.roll_out("v1")
    world.release("v2")
    world.rest()
    pods = world.make(10)
    world.up(*pods[1:])
    pods[0].crash(world.t)
    world.touch(pods[0])
    world.run(200)
    assert world.said(STALLED, "v2")[0] == "True"
    written = world.status("v2")
    world.run(3600)
    assert world.status("v2").conditions == written.conditions


MISSING = ("FailedMount", 'MountVolume.SetUp failed for volume "cfg" : configmap "x" not found')
UNMOUNTED = ("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[cfg]: timed out")


def test_a_missing_config_map_is_the_releases_fault_whatever_else_is_said() -> None:
    assert events_fault([MISSING, UNMOUNTED]) is None
    assert events_fault([UNMOUNTED]) is Fault.VOLUME
    assert events_fault([("FailedCreatePodSandBox", "no network")]) is Fault.SANDBOX
    assert events_fault([]) is None


def test_a_refused_request_does_not_make_forget_that_a_version_was_rolled_back_once() -> None:
    world, _, pod = releasing()
    pod.crash(world.t)
    world.touch(pod)
    world.run(130)
    assert world.image == "v1"
    world.release("v2")
    world.rest()
    world.ask_rollback("nowhere")
    world.rest()
    pods = world.make(1)
    pods[0].crash(world.t)
    world.touch(*pods)
    world.run(130)
    assert world.image == "v2", "it is suspended, not rolled back a second time"
    assert world.state("v2") == SUSPEND
