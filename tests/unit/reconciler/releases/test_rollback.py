"""How a rollback is carried out, refused and withdrawn."""

import msgspec
import pytest

from altershield.api import labels
from altershield.api.condition_types import Giver
from altershield.api.ops_config import Settings

from .policies import text
from .scenarios import (
    FAILED,
    ROLLBACK,
    ROLLED_BACK,
    RUNNING,
    SETTLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    first_release,
    is_restored,
    second_release,
)
from .world import World, fingerprint


def test_turning_rollback_off_withdraws_a_started_rollback(kind: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "policy"
    world.run(121)
    assert world.state() == ROLLBACK
    world.settings = Settings(rollback=False)
    world.rest()
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert "RollbackWithdrawn" in world.reasons


def test_rollback_is_withdrawn_if_the_pods_come_up(kind: str) -> None:
    world, pods = second_release(kind, 3)
    world.up(*pods[1:])
    world.write_refused = "denied by policy"
    world.run(130)
    assert world.state() == ROLLBACK
    assert world.said(ROLLED_BACK) == ("False", "WriteRefused")
    assert "RollbackRefused" in world.reasons
    world.up(pods[0])
    world.run(15)
    world.write_refused = ""
    world.run(30)
    assert world.image == "v2"
    world.remove(*world.of("v1"))
    world.rest()
    assert (world.image, world.state()) == ("v2", SUCCESS)
    assert "RollbackWithdrawn" in world.reasons
    assert world.condition(ROLLED_BACK) is None


@pytest.mark.parametrize("how", ["gone", "edited", "sick"])
def test_rollback_is_withdrawn_if_its_target_is_gone_edited_or_unhealthy(kind: str, how: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "denied by policy"
    world.run(125)
    assert world.state() == ROLLBACK
    match how:
        case "gone":
            del world.revisions["v1"]
        case "edited":
            world.edit_revision("v1")
        case _:
            for pod in world.of("v1"):
                pod.lose_readiness(world.t)
    world.write_refused = ""
    world.run(10)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    (event,) = [each for each in world.announced if each.reason == "RollbackWithdrawn"]
    assert not event.warning


def test_rollback_is_withdrawn_if_its_target_is_unhealthy_although_another_version_is_healthy(kind: str) -> None:
    world, old = second_release(kind)
    world.up(*old)
    world.begin("v3")
    world.make(1)
    world.write_refused = "denied by policy"
    world.run(125)
    assert world.state() == ROLLBACK
    for pod in world.of("v1"):
        pod.lose_readiness(world.t)
    world.write_refused = ""
    world.run(5)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    assert "no pod of" in text(world, "RollbackWithdrawn")


def test_refused_rollback_write_is_reported_while_verification_and_suspension_continue(kind: str) -> None:
    world, pods = second_release(kind, 3)
    world.write_refused = "admission webhook policy denied the request"
    world.run(125)
    assert world.state() == ROLLBACK
    assert "; the API server refuses to change the workload: admission webhook policy denied" in world.message(
        ROLLED_BACK
    )
    assert world.reasons.count("RollbackRefused") == 1
    world.run(20)
    assert world.suspended
    world.up(pods[0])
    count = len(world.batches)
    world.run(15)
    assert len(world.batches) == count + 1
    world.write_refused = ""
    world.rest()
    assert is_restored(world)
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("True", "PodNotUp")


def test_repair_lets_a_fix_pass_while_the_api_server_refuses_the_rollback(kind: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "ValidatingAdmissionPolicy 'registries' denied request: this registry is not allowed"
    world.run(125)
    assert (world.state(), world.suspended) == (ROLLBACK, True)
    world.request("Repair")
    world.rest()
    assert (world.state(), labels.IGNORED_SUSPEND in world.own_labels) == (ROLLBACK, True)
    world.remove(*world.of("v2"))
    world.roll_out("v3")
    assert (world.said(ROLLED_BACK, "v3"), world.suspended) == (("", ""), False)


@pytest.mark.parametrize("to", ["", "version", "name"])
def test_requested_rollback_is_carried_out_although_rollback_is_off(kind: str, to: str) -> None:
    world, pods = second_release(kind, 3)
    world.settings = Settings(rollback=False)
    world.up(*pods)
    world.run(20)
    world.make_up(1, "v1")
    world.ask_rollback({"": "", "version": fingerprint("v1"), "name": "web-v1"}[to])
    world.run(5)
    assert is_restored(world)
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("True", "Requested")


def test_impossible_rollback_request_leaves_a_settled_release_settled(kind: str) -> None:
    world = first_release(kind)
    world.roll_out("v1")
    world.ask_rollback("nowhere")
    world.rest()
    assert (world.state(), world.said(SETTLED)[0]) == (SUCCESS, "True")
    assert "RollbackImpossible" in world.reasons
    assert world.rest() == 0


def test_rolled_back_condition_is_removed_when_the_verdict_is_corrected(kind: str) -> None:
    world = first_release(kind)
    pods = world.make(3)
    world.up(*pods[:2])
    world.run(121)
    assert (world.state(), world.said(ROLLED_BACK)) == (SUSPEND, ("False", "NotUndone"))
    world.judge(pods[2], "pass")
    world.rest()
    assert (world.state(), world.said(ROLLED_BACK)) == (RUNNING, ("", ""))


def test_rolled_back_release_has_failed_verification(kind: str) -> None:
    world, _ = second_release(kind)
    world.run(125)
    assert (world.image, world.state("v2")) == ("v1", FAILED)
    assert world.said(VERIFIED, "v2") == ("False", Giver.HEALTH)
    assert "is not up after 120 s" in world.message(VERIFIED, "v2")


def test_new_release_supersedes_a_pending_rollback(kind: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "denied"
    world.run(121)
    world.begin("v3")
    assert world.state("v2") == FAILED
    assert world.said(ROLLED_BACK, "v2") == ("False", "Superseded")
    assert world.status("v3").previous.uid == "uid-v1"


def test_unready_pods_that_an_ordered_controller_waits_for_are_deleted_after_the_rollback() -> None:
    world, (fine, pod) = second_release("StatefulSet", 2)
    world.up(fine)
    world.touch(pod.wait_for_image())
    world.run(121)
    assert is_restored(world)
    assert pod.uid not in world.pods
    assert fine.uid in world.pods, "the controller replaces ready pods itself"
    assert world.state("v2") == FAILED


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "CloneSet"])
def test_rollback_deletes_no_pods_of_kinds_that_replace_unready_pods(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    world.run(121)
    assert pod.uid in world.pods


def test_request_for_a_version_that_is_not_current_deletes_none_of_its_pods() -> None:
    """A person writes the request into the ChangeWorkload of the version to go back to. A pod of that version, which
    a partition keeps, starts at the moment."""
    world = World("StatefulSet", replicas=3)
    old = world.roll_out("v1")
    world.partition = 2
    world.begin("v2")
    world.remove(old[2])
    (new,) = world.make(1)
    world.touch(old[0].lose_readiness(world.t))
    world.edit_status("v1", status=ROLLBACK)

    world.reconcile()

    assert old[0].uid in world.pods
    assert world.state("v1") == SUCCESS
    assert world.image == "v2"
    world.up(new)
    world.run(30)
    assert world.state() == SUCCESS


@pytest.mark.parametrize(
    ("partition", "kept", "deleted"), [(99, "web-v2", False), (99, "web-v1", True), (0, "web-v2", True)]
)
def test_rollback_deletes_no_pod_that_its_stateful_set_would_create_with_the_same_template(
    partition: int, kept: str, deleted: bool
) -> None:
    """A partition keeps all pods at the current revision, which is v2 if v2 was rolled out completely."""
    world = World("StatefulSet", replicas=3)
    world.roll_out("v1")
    pod, *others = world.roll_out("v2")
    world.make_up(1, "v1")
    world.partition, world.current_revision = partition, kept
    world.ask_rollback("web-v1")
    world.touch(pod.lose_readiness(world.t))
    world.rest()
    world.run(30)
    assert world.image == "v1"
    assert world.state("v2") == FAILED
    assert (pod.uid not in world.pods) is deleted
    world.touch(others[0].lose_readiness(world.t))
    world.rest()
    assert (others[0].uid not in world.pods) is deleted


def test_requested_rollback_is_withdrawn_if_its_target_was_edited(kind: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "denied by policy"
    world.ask_rollback("web-v1")
    world.rest()
    assert world.said(ROLLED_BACK) == ("False", "WriteRefused")
    world.edit_revision("v1")
    world.write_refused = ""
    assert world.status().rollback_requested
    world.rest()
    assert (world.image, world.state(), world.status().rollback_requested) == ("v2", RUNNING, False)
    assert "RollbackWithdrawn" in world.reasons


def test_requested_rollback_is_carried_out_after_a_refused_write_whatever_its_condition_says(kind: str) -> None:
    """An automatic rollback of pods that are up would be withdrawn."""
    world, pods = second_release(kind, 3)
    world.up(*pods)
    world.run(20)
    world.write_refused = "denied by policy"
    world.ask_rollback("web-v1")
    world.rest()
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert found.reason == "WriteRefused"
    world.edit_status(conditions=(msgspec.structs.replace(found, message="another text"),))
    world.write_refused = ""
    world.rest()
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "Requested")


def test_automatic_rollback_is_not_stored_as_requested(kind: str) -> None:
    world, _ = second_release(kind)
    world.write_refused = "denied by policy"
    world.run(125)
    assert (world.state(), world.status().rollback_requested) == (ROLLBACK, False)
