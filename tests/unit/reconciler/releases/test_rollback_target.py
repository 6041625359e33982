"""Which version a release is rolled back to, if any."""

import pytest

from altershield.api import labels
from altershield.api.ops_config import Settings

from .scenarios import (
    FAILED,
    ROLLED_BACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    first_release,
    is_restored,
    release_bad,
    second_release,
    serving,
)
from .world import World, fingerprint


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_workload_without_rolling_update_is_not_rolled_back_automatically(kind: str) -> None:
    world, _ = second_release(kind)
    world.rolling = False
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    assert "not rolled back: the update strategy is" in world.message(ROLLED_BACK)


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
def test_paused_workload_is_not_rolled_back(kind: str) -> None:
    world, _ = second_release(kind)
    world.paused = True
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)


def test_release_is_suspended_if_the_older_version_has_pods_and_none_is_ready(kind: str) -> None:
    world, _ = second_release(kind)
    world.touch(*[pod.lose_readiness(world.t) for pod in world.of("v1")])
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert world.message(ROLLED_BACK).endswith("web-v1, which holds the last version that passed, is ready")


def test_pods_on_a_lost_node_do_not_count_as_serving(kind: str) -> None:
    world, (pod, *_) = second_release(kind)
    pod.node = "node-2"
    world.touch(pod)
    world.lose_node("node-1")
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)


def test_version_that_is_released_again_is_not_rolled_back_a_second_time(kind: str) -> None:
    world, _ = second_release(kind)
    world.run(121)
    assert is_restored(world)
    world.remove(*world.of("v2"))
    world.run(20)
    assert world.state("v1") == SUCCESS
    assert world.state("v2") == FAILED, "the change workload of the rolled back version is kept"
    world.begin("v2")
    assert world.said(ROLLED_BACK) == ("False", "ReleasedAgain")
    world.make(1)
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)


def test_rolled_back_condition_is_removed_when_the_version_is_released_again_and_passes(kind: str) -> None:
    world, _ = second_release(kind)
    world.run(121)
    world.remove(*world.of("v2"))
    world.run(20)
    world.roll_out("v2")
    assert world.condition(ROLLED_BACK) is None


def test_rollback_skips_a_version_that_did_not_pass(kind: str) -> None:
    """v2 came up, but a person failed it. v3 is the repair and does not come up."""
    world, pods = second_release(kind, 3)
    world.up(*pods)
    world.run(15)
    world.fail(pods[0])
    assert (world.state(), world.suspended) == (SUSPEND, True)
    world.make_up(1, "v1")
    world.release("v3")
    world.make(1)
    world.run(121)
    assert is_restored(world)
    assert world.status("v3").previous.uid == "uid-v1"


def test_rollback_finds_the_last_passed_version_after_its_change_workload_was_removed(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.roll_out("v2")
    assert set(world.releases) == {fingerprint("v2")}
    assert world.status().previous.name == "web-v1"
    world.make_up(1, "v1")
    world.ask_rollback()
    world.run(30)
    assert is_restored(world)


def test_recreated_revision_is_recognised_by_its_template(kind: str) -> None:
    world, _ = second_release(kind)
    world.revisions["v1"]["metadata"]["uid"] = "uid-v1-recreated"
    if kind == "Deployment":
        for pod in world.of("v1"):
            pod.owner["uid"] = "uid-v1-recreated"
        world.touch(*world.of("v1"))
    world.run(121)
    assert is_restored(world)


def test_edited_revision_is_not_released(kind: str) -> None:
    world, _ = second_release(kind)
    world.edit_revision("v1")
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert "web-v1 has been changed since it passed" in world.message(ROLLED_BACK)


def test_deleted_rollback_target_is_named_in_the_condition(kind: str) -> None:
    world, _ = second_release(kind)
    world.begin("v3")
    world.make_up(1, "v2")
    world.make(1)
    world.remove(*world.of("v1"))
    del world.revisions["v1"]
    world.run(121)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    assert "web-v1, which held the last version that passed, does not exist any more" in world.message(ROLLED_BACK)


def test_version_without_ready_pods_is_not_a_rollback_target(kind: str) -> None:
    world, _ = second_release(kind)
    world.begin("v3")
    world.make_up(1, "v2")
    world.make(1)
    world.touch(*[pod.lose_readiness(world.t) for pod in world.of("v1")])
    world.run(121)
    assert (world.image, world.state()) == ("v3", SUSPEND)
    assert "no pod of" in world.message(ROLLED_BACK)


def from_before_altershield(kind: str, ready: int) -> World:
    """The first release that AlterShield governs. So many of three pods of the version before are ready."""
    world = World(kind)
    world.release("v0")
    old = world.make(3)
    world.up(*old[:ready])
    world.generation, world.own_labels = 1, {}
    stored = world.revisions["v0"]["spec" if kind == "Deployment" else "data"]
    del (stored if kind == "Deployment" else stored["spec"])["template"]["metadata"]["labels"][labels.VERSION]
    world.begin("v1")
    world.make(1)
    return world


@pytest.mark.parametrize("ready", [3, 2])
def test_version_from_before_altershield_is_a_target_only_if_all_its_pods_are_ready(kind: str, ready: int) -> None:
    world = from_before_altershield(kind, ready)
    world.run(121)
    assert is_restored(world, "v0") is (ready == 3)
    assert world.status("v1").rollback_to == (fingerprint("v0") if ready == 3 else "")


def test_version_from_before_altershield_is_offered_by_its_name(kind: str) -> None:
    world = from_before_altershield(kind, 3)
    world.rest()
    world.ask_rollback("nowhere")
    world.rest()
    assert world.message(ROLLED_BACK).endswith("name one of: web-v0")


def test_version_that_never_passed_is_not_a_rollback_target(kind: str) -> None:
    world = first_release(kind)
    world.make_up(3)
    world.rest()
    world.begin("v2")
    world.make(1)
    world.run(121)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert "no older version has passed verification" in world.message(ROLLED_BACK)


def test_requested_rollback_to_an_unknown_version_is_refused_and_lists_the_known_ones(kind: str) -> None:
    world, _ = second_release(kind)
    world.ask_rollback("nowhere")
    world.rest()
    assert (world.image, world.state()) == ("v2", RUNNING)
    found = world.condition(ROLLED_BACK)
    assert found is not None
    assert (found.status, found.reason) == ("False", "NoTarget")
    assert found.message == (
        "a rollback was requested, but the workload has no version nowhere; "
        f"name one of: web-v1 (version {fingerprint('v1')})"
    )
    assert "RollbackImpossible" in world.reasons
    assert world.status().rollback_to == ""


def test_requested_rollback_without_a_passed_version_is_refused_unless_it_names_a_target(kind: str) -> None:
    world = first_release(kind)
    world.begin("v2")
    world.make(1)
    world.rest()
    world.ask_rollback()
    world.rest()
    assert (world.image, world.state()) == ("v2", RUNNING)
    assert "no version has passed verification before this one; name one of: web-v1" in world.message(ROLLED_BACK)
    world.ask_rollback("web-v1")
    world.rest()
    assert is_restored(world)


def test_requested_rollback_of_the_first_version_is_refused(kind: str) -> None:
    world = first_release(kind)
    world.make(1)
    world.rest()
    world.ask_rollback()
    world.rest()
    assert world.message(ROLLED_BACK).endswith("; the workload has no older version")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_version_that_passed_is_a_rollback_target_while_it_is_verified_again(kind: str) -> None:
    world = serving(kind, 4, "v0")
    world.roll_out("good")
    bad = release_bad(world, "bad-1")
    world.remove(world.of("good")[0])
    world.run(125)
    assert world.image == "good"
    world.remove(bad)
    (new,) = world.make(1)
    world.run(5)
    assert world.state() == RUNNING
    release_bad(world, "bad-2")
    world.up(new)
    world.run(200)
    assert world.image == "good"


def test_version_that_passed_is_a_rollback_target_after_an_interrupted_release_of_another_one() -> None:
    world = serving("Deployment", 4, "v0")
    world.roll_out("good")
    world.begin("other")
    (pod,) = world.make(1)
    world.run(5)
    world.begin("good")
    world.remove(pod, world.of("good")[0])
    (new,) = world.make(1)
    world.run(3)
    release_bad(world, "bad")
    world.up(new)
    world.run(200)
    assert world.image == "good"


def test_version_that_failed_after_it_passed_is_not_a_rollback_target() -> None:
    world = serving("Deployment", 4)
    world.roll_out("good")
    world.settings = Settings(blocking=False)
    bad = release_bad(world, "bad-1")
    world.remove(world.of("good")[0])
    world.run(125)
    assert world.image == "good"
    world.remove(bad)
    world.make_up(1)
    world.run(60)
    world.fail(world.of("good")[0])
    assert world.state("good") == SUSPEND
    release_bad(world, "bad-2")
    world.run(200)
    assert world.image == "v1", "the version before it is restored"


def test_pods_of_a_version_that_was_rolled_back_do_not_count_as_serving(kind: str) -> None:
    world = World(kind, replicas=3)
    world.roll_out("v0")
    v1 = world.roll_out("v1")
    world.begin("v2")
    world.remove(*v1[1:])
    world.make_up(2)
    world.run(20)
    world.ask_rollback()
    world.run(5)
    assert is_restored(world, "v1")
    (new,) = world.make(1)
    world.touch(new.wait_for_image())
    world.run(300)
    assert world.image == "v1", "no pod of v0 exists"
    assert world.state() == SUSPEND


def test_the_version_from_which_a_release_goes_back_is_left(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.roll_out("v2")
    assert not world.status().previous.left
    world.roll_out("v1")
    assert (world.status().previous.name, world.status().previous.left) == ("web-v2", True)
    world.roll_out("v3")
    assert (world.status().previous.name, world.status().previous.left) == ("web-v1", False)


def test_a_version_is_not_left_if_the_version_to_which_a_release_goes_was_left_before(kind: str) -> None:
    """v2 was left, so the second release of v2 is a new one. It does not go back from v1."""
    world = World(kind)
    for version in ("v1", "v2", "v1", "v2"):
        world.roll_out(version)
    assert (world.status().previous.name, world.status().previous.left) == ("web-v1", False)
    world.roll_out("v1")
    assert (world.status().previous.name, world.status().previous.left) == ("web-v2", True)
