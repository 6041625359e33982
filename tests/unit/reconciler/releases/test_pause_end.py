"""The end of a pause: `onFailure: pause` with `pauseSeconds`."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import PauseEnd
from altershield.api.meta import plain_time
from altershield.api.ops_config import Settings
from altershield.api.policy import Mode, OnFailure, OnPauseEnd
from tests.unit.reconciler.releases.scenarios import (
    FAILED,
    ROLLED_BACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    is_restored,
)
from tests.unit.reconciler.releases.world import Killed, SimPod, World

from .policies import failing, policy, released, text

SECONDS = 600
CONTINUE: dict[str, Any] = {"on_pause_end": OnPauseEnd.CONTINUE}


def paused(kind: str, image: str = "v2", **rules: Any) -> tuple[World, SimPod]:
    """A failed release whose rollout is paused for 600 s."""
    world, pod = failing(kind, image, on_failure=OnFailure.PAUSE, pause_seconds=SECONDS, **rules)
    world.rest()
    assert (world.state(), world.suspended, world.held) == (SUSPEND, True, True)
    return world, pod


def end(world: World) -> int:
    return world.status().pause.end_time_unix


def test_end_is_stored_and_told(kind: str) -> None:
    world, _ = paused(kind)
    assert world.status().pause == PauseEnd(plain_time(world.now + SECONDS), int(world.now + SECONDS))
    assert "paused until 20" in text(world, "RolloutPaused")
    assert "when the last version that passed is released again: 1 of 1 pods failed" in text(world, "RolloutPaused")
    assert world.decision.requeue_after == end(world) - world.now
    world.run(SECONDS - 5)
    assert (world.image, world.state(), world.held) == ("v2", SUSPEND, True)


def test_end_rolls_back_before_the_rollout_continues(kind: str) -> None:
    world, _ = paused(kind)
    continued_with = []
    world.write_hook = lambda what: continued_with.append(world.image) if what == "continue" else None
    world.run(SECONDS)
    assert is_restored(world)
    assert continued_with == ["v1"]
    assert (world.held, world.paused) == (False, False)
    assert (world.state("v2"), world.said(ROLLED_BACK, "v2")) == (FAILED, ("True", "VerificationFailed"))
    assert world.said(VERIFIED, "v2") == ("False", "FailedByPerson")
    assert world.status("v2").pause.ended
    assert "the pause has ended after 600 s: version" in text(world, "RolloutPauseEnded")
    assert "find error); the pause has ended after 600 s; releasing version" in text(world, "RollbackStarted")
    assert [each for each in world.reasons if each.startswith("Roll")] == [
        *("RolloutPaused", "RolloutPauseEnded", "RollbackStarted", "RolledBack", "RolloutContinued"),
    ]
    world.run(60)
    assert world.resumed_by in ([], [world.version]), "the suspension lasts until the older version succeeds"


def test_end_continues_the_rollout_if_the_policy_says_so_and_the_version_stays_failed(kind: str) -> None:
    world, _ = paused(kind, **CONTINUE)
    world.run(SECONDS)
    assert (world.image, world.held, world.paused) == ("v2", False, False)
    assert (world.state(), world.suspended, world.said(VERIFIED)[0]) == (SUSPEND, True, "False")
    assert "continues although the version failed, and further releases are denied" in text(world, "RolloutPauseEnded")
    (other,) = world.make_up(1)
    world.run(30)
    world.judge(other, "unpass")
    world.run(3 * SECONDS)
    assert (world.image, world.state(), world.held) == ("v2", SUSPEND, False), "it is paused once"
    assert world.reasons.count("RolloutPaused") == world.reasons.count("RolloutPauseEnded") == 1


def test_continued_rollout_is_not_paused_again_because_its_failed_pod_is_evicted(kind: str) -> None:
    world, pod = paused(kind, **CONTINUE)
    world.run(SECONDS)
    world.remove(pod)
    (successor,) = world.make_up(1)
    world.run(30)
    world.judge(successor, "unpass")
    world.run(60)
    assert (world.state(), world.suspended, world.held) == (SUSPEND, True, False)


def test_pause_stays_if_no_version_can_be_released_again(kind: str) -> None:
    world, _ = paused(kind, "v1")
    world.run(SECONDS)
    looks = world.looks
    world.run(3 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.held) == ("v1", SUSPEND, True, True)
    assert world.said(ROLLED_BACK) == ("False", "NotUndone")
    assert "its rollout stays paused until a person decides: 1 of" in text(world, "RolloutPauseEnded")
    assert "no older version has passed verification" in text(world, "RolloutPauseEnded")
    assert world.reasons.count("RolloutPauseEnded") == 1
    assert world.looks == looks, "one attempt"
    world.request("Approve")
    world.rest()
    assert (world.suspended, world.held) == (False, False)


def test_setting_rollback_wins_over_the_end_of_the_pause(kind: str) -> None:
    world, _ = paused(kind)
    world.settings = Settings(rollback=False)
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.held) == ("v2", SUSPEND, True, True)
    assert "the setting `rollback` is off" in text(world, "RolloutPauseEnded")


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_pause_of_a_policy_that_does_not_enforce_has_no_end(kind: str, mode: Mode) -> None:
    world, _ = failing(kind, on_failure=OnFailure.PAUSE, pause_seconds=SECONDS, mode=mode)
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.held, world.status().pause) == ("v2", SUSPEND, False, PauseEnd())


# what other people do


@pytest.mark.parametrize("rules", [{}, CONTINUE])
def test_person_who_continued_the_rollout_wins_over_its_end(kind: str, rules: dict[str, Any]) -> None:
    world, _ = paused(kind, **rules)
    world.paused = False
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.paused) == ("v2", SUSPEND, True, False)
    if not rules:
        assert "somebody changed the rollout since AlterShield paused it" in text(world, "RolloutPauseEnded")


@pytest.mark.parametrize("rules", [{}, CONTINUE])
def test_pause_that_a_person_set_again_is_not_taken_back(kind: str, rules: dict[str, Any]) -> None:
    world, _ = paused(kind, **rules)
    world.paused_again = True
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.paused) == ("v2", SUSPEND, True, True)


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])
def test_rollout_that_a_person_paused_before_the_failure_has_no_end(kind: str) -> None:
    world, (pod,) = released(kind, on_failure=OnFailure.PAUSE, pause_seconds=SECONDS)
    world.paused = True
    world.judge(pod, "unpass")
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.paused, world.held) == ("v2", SUSPEND, True, False)
    assert world.status().pause == PauseEnd()


def test_edited_or_deleted_policy_changes_nothing_about_a_pause(kind: str) -> None:
    world, _ = paused(kind)
    world.policy = policy(mode=Mode.OBSERVE)
    world.run(SECONDS)
    assert is_restored(world)


def test_approval_ends_the_pause_and_the_next_failure_has_its_own_time(kind: str) -> None:
    world, pod = paused(kind)
    world.run(SECONDS / 2)
    world.request("Approve")
    world.rest()
    assert (world.suspended, world.held, world.status().pause) == (False, False, PauseEnd())
    world.fail(pod)
    assert world.held
    assert end(world) == int(world.now + SECONDS)


def test_resumption_ends_the_pause_for_good(kind: str) -> None:
    world, _ = paused(kind)
    world.request("Resume")
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.held) == ("v2", SUSPEND, False, False)
    assert world.status().pause == PauseEnd()
    (other,) = world.make_up(1)
    world.run(30)
    world.fail(other)
    assert (world.suspended, world.held) == (True, True)
    assert end(world) == int(world.now + SECONDS)


@pytest.mark.parametrize(("verb", "state"), [("Resume", SUSPEND), ("Approve", RUNNING)])
def test_request_before_the_end_wins_if_the_reconciler_comes_late(kind: str, verb: str, state: str) -> None:
    world, _ = paused(kind)
    world.request(verb)
    world.advance(2 * SECONDS)
    world.run(60)
    assert (world.image, world.state(), world.suspended, world.held) == ("v2", state, False, False)
    assert "RolloutPauseEnded" not in world.reasons


def test_pods_that_are_verified_again_get_the_whole_time_if_they_fail_again(kind: str) -> None:
    world, pod = paused(kind)
    world.run(SECONDS - 50)
    world.checked = False  # the check is under way
    world.request("Retry")
    world.run(60)
    assert (world.image, world.state(), world.held, world.status().pause) == ("v2", RUNNING, True, PauseEnd())
    world.judge(pod, "unpass")
    world.checked = True
    world.rest()
    assert (world.image, world.state(), world.held) == ("v2", SUSPEND, True)
    assert end(world) == int(world.now + SECONDS)


def test_repair_that_is_allowed_but_not_released_does_not_keep_the_pause(kind: str) -> None:
    world, _ = paused(kind)
    world.request("Repair")
    world.run(SECONDS)
    assert is_restored(world)


def test_requested_rollback_takes_the_pause_back_before_its_end(kind: str) -> None:
    world, _ = paused(kind)
    world.request("Rollback")
    world.rest()
    assert is_restored(world)
    assert not world.held
    assert "RolloutPauseEnded" not in world.reasons


def test_release_during_the_pause_takes_it_back_and_its_end_changes_nothing(kind: str) -> None:
    world, pod = paused(kind)
    world.remove(pod)
    world.begin("v3")
    assert not world.held
    world.make_up(world.replicas)
    world.remove(*[each for each in world.pods.values() if each.image != "v3"])
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.held) == ("v3", SUCCESS, False, False)


# pods


def test_end_waits_for_the_verdict_on_pods_that_replace_the_failed_ones(kind: str) -> None:
    world, pod = paused(kind)
    world.run(SECONDS - 5)
    world.remove(pod)
    (successor,) = world.make(1)
    world.checked = False  # the check is under way
    world.up(successor)
    world.run(60)
    assert (world.image, world.state(), world.held) == ("v2", RUNNING, True)
    world.judge(successor, "unpass")
    world.checked = True
    world.rest()
    assert is_restored(world)


def test_rollout_continues_if_the_pods_that_replace_the_failed_ones_pass(kind: str) -> None:
    world, pod = paused(kind)
    world.remove(pod)
    world.make_up(1)
    world.run(2 * SECONDS)
    assert (world.image, world.state(), world.suspended, world.held) == ("v2", RUNNING, True, False)
    assert world.status().pause == PauseEnd()


def test_end_rolls_back_a_version_of_which_no_pod_is_left(kind: str) -> None:
    """A StatefulSet that is paused creates a deleted pod again with the older template."""
    world, pod = paused(kind)
    world.remove(pod)
    world.run(SECONDS)
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "VerificationFailed")


def test_correction_of_the_verdict_just_before_the_end_wins(kind: str) -> None:
    world, pod = paused(kind)
    world.run(SECONDS - 1)
    world.judge(pod, "pass", "false alarm")
    world.run(SECONDS)
    assert world.image == "v2"
    assert not world.held
    assert "RolloutPauseEnded" not in world.reasons


# crashes and clocks


@pytest.mark.parametrize("rules", [{}, CONTINUE])
@pytest.mark.parametrize("late", [0, 2 * SECONDS])
def test_end_is_the_same_if_the_reconciler_is_killed_after_any_write(
    kind: str, rules: dict[str, Any], late: float
) -> None:
    """The next reconciler starts at once, or after the end of the pause."""
    for fatal in range(30):
        world, _ = failing(kind, on_failure=OnFailure.PAUSE, pause_seconds=SECONDS, **rules)
        last = world.writes + fatal

        def kill(_: str, world: World = world, last: int = last) -> None:
            if world.writes == last:
                raise Killed

        world.write_hook = kill
        killed = False
        try:
            world.run(SECONDS + 60)
        except Killed:
            killed = True
            world.write_hook = lambda _: None
            world.die()
            world.advance(late)
            world.run(2 * SECONDS)
        assert (world.held, world.paused) == (False, False), f"killed at write {fatal}"
        if rules:
            found = (world.image, world.state(), world.suspended, world.status().pause.ended)
            assert found == ("v2", SUSPEND, True, True), f"killed at write {fatal}"
        else:
            assert is_restored(world), f"killed at write {fatal}"
            assert world.said(ROLLED_BACK, "v2") == ("True", "VerificationFailed"), f"killed at write {fatal}"
        if not killed:
            assert fatal > 5
            return
    raise AssertionError("the reconciler writes again and again")


def test_end_that_a_wrong_clock_stored_is_corrected() -> None:
    world, _ = paused("Deployment")
    world.edit_status(pause=msgspec.structs.replace(world.status().pause, end_time_unix=int(world.now) + 10**8))
    world.rest()
    assert end(world) == int(world.now + SECONDS)
    world.run(SECONDS)
    assert is_restored(world)


def test_clock_of_the_next_leader_that_is_a_little_behind_changes_no_end() -> None:
    world, _ = paused("Deployment")
    before = end(world)
    world.ours = -30
    writes = world.writes
    world.die()
    world.rest()
    assert (end(world), world.writes) == (before, writes)
