"""When a workload is suspended, and when the suspension ends."""

import msgspec

from altershield.api import labels
from altershield.api.condition_types import Giver
from altershield.api.ops_config import Settings

from .scenarios import ROLLED_BACK, RUNNING, SUCCESS, SUSPEND, VERIFIED, first_release, second_release
from .world import fingerprint


def test_release_is_suspended_instead_of_rolled_back_if_rollback_is_off(kind: str) -> None:
    world, _ = second_release(kind)
    world.settings = Settings(rollback=False)
    world.run(121)
    assert world.image == "v2"
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.message(ROLLED_BACK).endswith("not rolled back: the setting `rollback` is off")


def test_state_is_suspend_without_the_label_if_rollback_and_blocking_are_off(kind: str) -> None:
    world, _ = second_release(kind)
    world.settings = Settings(rollback=False, blocking=False)
    world.run(121)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, False)
    assert world.announced[-1].message.endswith("further releases are admitted, because the setting `blocking` is off")


def test_turning_blocking_on_labels_a_workload_whose_release_is_suspended(kind: str) -> None:
    world, _ = second_release(kind)
    world.settings = Settings(rollback=False, blocking=False)
    world.run(121)
    world.settings = Settings(rollback=False)
    count = len(world.announced)
    world.rest()
    assert world.suspended
    assert len(world.announced) == count


def test_suspended_state_label_and_reason_are_written_in_one_pass(kind: str) -> None:
    """A reconciler that dies in between must not leave a state without its reason."""
    world = first_release(kind)
    world.make(3)
    world.rest()
    world.advance(120)
    world.reconcile()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.said(VERIFIED) == ("False", Giver.HEALTH)


def test_suspension_ends_only_when_the_release_succeeds(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    world.remove(pods[0])
    world.run(60)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.make_up(1)
    world.run(15)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_repair_release_stays_suspended_until_it_succeeds(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    world.begin_repair("v2")
    assert labels.IGNORED_SUSPEND not in world.own_labels, "the label counts for one release"
    world.make_up(3)
    world.remove(*pods)
    world.run(9)
    assert (world.state(), world.suspended) == (RUNNING, True)
    world.run(1)
    assert (world.state(), world.suspended) == (SUCCESS, False)
    assert set(world.releases) == {fingerprint("v2")}


def test_suspension_of_an_orphaned_change_workload_is_inherited(kind: str) -> None:
    """The workload was deleted with `--cascade=orphan` and created again."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    since = world.own_labels.pop(labels.SUSPEND)
    orphan = world.stored()
    metadata = msgspec.structs.replace(orphan.metadata, owner_references=())
    world.releases[fingerprint("v1")] = msgspec.structs.replace(orphan, metadata=metadata)
    world.begin("v2")
    assert world.own_labels[labels.SUSPEND] == since
    world.make_up(3)
    world.remove(*pods)
    world.run(30)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_suspension_of_an_orphan_is_not_inherited_by_a_release_that_succeeds_in_the_same_pass(kind: str) -> None:
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    del world.own_labels[labels.SUSPEND]
    orphan = world.stored()
    metadata = msgspec.structs.replace(orphan.metadata, owner_references=())
    world.releases[fingerprint("v1")] = msgspec.structs.replace(orphan, metadata=metadata)
    world.settings = Settings(blocking=False)
    world.release("v2")
    world.make_up(3)
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


def test_suspension_is_not_inherited_from_a_change_workload_that_has_an_owner(kind: str) -> None:
    """A person removed the suspend label, so the next release is not suspended."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    world.release("v2")
    del world.own_labels[labels.SUSPEND]
    world.rest()
    assert not world.suspended
