"""What a DefensePolicy changes about a release: its modes, and what a failure leads to."""

import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy, Mode, OnFailure, OnStartFailure
from altershield.releases.enforcement import Would, would
from reconciler.releases.pods.health import Timing
from reconciler.releases.terms.rules import settings_of, timing_of
from tests.unit.reconciler.releases.scenarios import (
    FAILED,
    ROLLBACK,
    ROLLED_BACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    is_restored,
)
from tests.unit.reconciler.releases.world import World

from .policies import failing, policy, released, text

# settings and times


def test_policy_without_values_changes_nothing() -> None:
    assert settings_of(Settings(), AppliedPolicy()) == Settings()
    assert settings_of(Settings(), policy()) == Settings()
    assert timing_of(Timing(120, 10), policy()) == Timing(120, 10)
    assert timing_of(Timing(120, 10), policy(start_timeout_seconds=300, observe_seconds=0)) == Timing(300, 0)
    assert timing_of(Timing(120, 10), AppliedPolicy(start_timeout_seconds=5)) == Timing(5, 10)


def test_batch_and_rollback_share_of_the_policy_replace_those_of_the_settings() -> None:
    found = settings_of(Settings(), policy(batch="50%", rollback_share=3))
    assert (found.batch_size(10), found.overdue(10)) == (5, 3)
    assert settings_of(Settings(branch=True, content="7"), policy(batch=2)).batch_size(10) == 2


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_only_enforce_suspends_and_rolls_back(mode: Mode) -> None:
    found = settings_of(Settings(), policy(mode=mode))
    assert not found.blocking
    assert not found.rollback
    assert found.blocking_off == found.rollback_off
    assert found.blocking_off.startswith("the DefensePolicy shop/web only ")


def test_settings_blocking_and_rollback_stay_kill_switches() -> None:
    off = Settings(blocking=False, rollback=False)
    for each in (policy(), policy(mode=Mode.OBSERVE), policy(on_failure=OnFailure.ROLLBACK)):
        found = settings_of(off, each)
        assert not found.blocking
        assert not found.rollback
        assert found.rollback_off == "the setting `rollback` is off"
        assert found.blocking_off == "the setting `blocking` is off"


# modes


@pytest.mark.parametrize("on_failure", list(OnFailure))
def test_observe_records_a_failure_and_touches_no_workload(kind: str, on_failure: OnFailure) -> None:
    world, _ = failing(kind, mode=Mode.OBSERVE, on_failure=on_failure)
    world.run(600)
    assert (world.image, world.state(), world.suspended, world.paused) == ("v2", SUSPEND, False, False)
    assert "the DefensePolicy shop/web only observes" in text(world, "ReleaseSuspended")
    assert world.message(VERIFIED).endswith("; the DefensePolicy shop/web only observes")
    assert {"RolloutPaused", "RollbackStarted"}.isdisjoint(world.reasons)
    undone = ("False", "NotUndone") if on_failure is OnFailure.ROLLBACK else ("", "")
    assert world.said(ROLLED_BACK) == undone
    wanted = Would.ROLLBACK if on_failure is OnFailure.ROLLBACK else Would.SUSPEND
    assert would(world.policy, world.status()) is wanted


@pytest.mark.parametrize("comes_up", [True, False])
def test_release_that_enforce_could_not_have_rolled_back_counts_as_suspended(kind: str, comes_up: bool) -> None:
    """It is the first one: there is no version to go back to."""
    for mode in (Mode.OBSERVE, Mode.ENFORCE):
        world = World(kind)
        world.policy = policy(mode=mode, on_failure=OnFailure.ROLLBACK)
        world.begin("v1")
        (pod,) = world.make(1)
        if comes_up:
            world.up(pod)
            world.run(30)
            assert world.judge(pod, "unpass")
        world.run(300)
        assert (world.state(), world.suspended) == (SUSPEND, mode is Mode.ENFORCE)
        if mode is Mode.OBSERVE:
            assert would(world.policy, world.status()) is Would.SUSPEND
            assert "the DefensePolicy shop/web only observes" in text(world, "ReleaseSuspended")


def test_observe_does_not_roll_back_a_release_that_never_comes_up(kind: str) -> None:
    world, _ = released(kind, up=False, mode=Mode.OBSERVE)
    world.run(300)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, False)
    assert "not rolled back: the DefensePolicy shop/web only observes" in world.message(ROLLED_BACK)
    assert would(world.policy, world.status()) is Would.ROLLBACK


def test_release_that_never_comes_up_and_has_no_passed_version_before_it_counts_as_suspended(kind: str) -> None:
    """The version before it serves, but failed verification."""
    world = World(kind)
    world.policy = policy(mode=Mode.OBSERVE)
    world.begin("v1")
    pods = world.make_up(3)
    world.run(30)
    world.fail(pods[0])
    assert world.state() == SUSPEND
    world.begin("v2")
    world.make(1)
    world.run(300)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    assert world.message(ROLLED_BACK).endswith("not rolled back: no older version has passed verification")
    assert would(world.policy, world.status()) is Would.SUSPEND


def test_on_start_failure_suspend_suspends_instead_of_rolling_back(kind: str) -> None:
    world, _ = released(kind, up=False, on_start_failure=OnStartFailure.SUSPEND)
    world.run(300)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    assert "the DefensePolicy shop/web has onStartFailure: suspend" in world.message(ROLLED_BACK)


def test_start_timeout_of_the_policy_counts(kind: str) -> None:
    world, _ = released(kind, up=False, start_timeout_seconds=500)
    world.run(450)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(100)
    assert is_restored(world)


# onFailure: rollback


@pytest.mark.parametrize("rolling", [True, False])
def test_release_that_failed_verification_is_rolled_back(kind: str, rolling: bool) -> None:
    world, pod = failing(kind, rolling=rolling, on_failure=OnFailure.ROLLBACK)
    world.rest()
    assert is_restored(world)
    assert not world.suspended
    assert (world.state("v2"), world.said(ROLLED_BACK, "v2")) == (FAILED, ("True", "VerificationFailed"))
    assert world.said(VERIFIED, "v2") == ("False", "FailedByPerson")
    assert [pod.pod for pod in world.status("v2").defense_check_fail_pods] == [pod.name]
    assert world.reasons.count("RolledBack") == 1


def test_successful_release_that_fails_later_is_rolled_back(kind: str) -> None:
    world = World(kind)
    world.roll_out("v1")
    world.policy = policy(on_failure=OnFailure.ROLLBACK)
    pods = world.roll_out("v2")
    world.fail(pods[0])
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "VerificationFailed")


def test_version_that_fails_again_after_a_rollback_is_suspended(kind: str) -> None:
    world, pod = failing(kind, on_failure=OnFailure.ROLLBACK)
    world.rest()
    assert is_restored(world)
    world.remove(pod)
    world.run(300)
    world.begin("v2")
    (pod,) = world.make_up(1)
    world.run(30)
    world.judge(pod, "unpass")
    world.run(30)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    assert "rolled back once before" in text(world, "ReleaseSuspended")
    assert world.reasons.count("RolledBack") == 1


def test_failed_first_release_has_no_target_and_is_suspended_once(kind: str) -> None:
    world, _ = failing(kind, "v1", on_failure=OnFailure.ROLLBACK)
    world.rest()
    looks = world.looks
    world.run(600)
    assert (world.image, world.state(), world.suspended) == ("v1", SUSPEND, True)
    assert world.said(ROLLED_BACK) == ("False", "NotUndone")
    assert "no older version has passed verification" in text(world, "ReleaseSuspended")
    assert world.looks == looks  # one attempt


def test_stored_rollback_is_withdrawn_if_the_verdict_is_corrected_before_it_is_carried_out(kind: str) -> None:
    world, (pod,) = released(kind, on_failure=OnFailure.ROLLBACK)
    world.write_refused = "a policy of the cluster"
    world.judge(pod, "unpass")
    world.run(10)
    assert (world.image, world.state()) == ("v2", ROLLBACK)
    world.judge(pod, "pass", "false alarm")
    world.write_refused = ""
    world.run(400)
    assert world.image == "v2"
    assert "none of its pods fails verification any more" in text(world, "RollbackWithdrawn")
    assert world.state() == WorkloadState.RUNNING
    world.judge(pod, "unpass")
    world.run(10)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)  # one attempt for each version


def test_withdrawn_rollback_is_not_tried_again_and_the_release_is_suspended(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.ROLLBACK)
    world.write_refused = "a policy of the cluster"
    world.run(10)
    assert world.state() == ROLLBACK
    del world.revisions["v1"]
    world.write_refused = ""
    world.run(600)
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    assert world.reasons.count("RollbackStarted") == world.reasons.count("RollbackWithdrawn") == 1


def test_rollback_after_refused_writes_keeps_its_reason(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.ROLLBACK)
    world.write_refused = "a policy of the cluster"
    world.run(10)
    assert world.said(ROLLED_BACK) == ("False", "WriteRefused")
    world.write_refused = ""
    world.run(400)
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "VerificationFailed")


def test_setting_rollback_wins_over_the_policy(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.ROLLBACK)
    world.settings = Settings(rollback=False)
    world.rest()
    assert (world.image, world.state(), world.suspended) == ("v2", SUSPEND, True)
    world.settings = Settings()
    world.run(600)
    assert world.image == "v2"  # one attempt


def test_paused_rollout_is_not_rolled_back() -> None:
    world, (pod,) = released("Deployment", on_failure=OnFailure.ROLLBACK)
    world.paused = True
    world.fail(pod)
    assert (world.image, world.suspended) == ("v2", True)
    assert "not rolled back: the rollout is paused" in text(world, "ReleaseSuspended")


@pytest.mark.parametrize("on_failure", [OnFailure.ROLLBACK, OnFailure.PAUSE])
def test_overdue_pods_are_no_failed_verification(kind: str, on_failure: OnFailure) -> None:
    world, _ = released(kind, up=False, on_failure=on_failure, on_start_failure=OnStartFailure.SUSPEND)
    world.run(600)
    assert (world.image, world.state(), world.suspended, world.held) == ("v2", SUSPEND, True, False)


# onFailure: pause


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_workload_whose_pods_people_delete_is_not_paused(kind: str) -> None:
    world = World(kind)
    world.rolling = False
    world.policy = policy(on_failure=OnFailure.PAUSE)
    pods = world.roll_out("v1")
    world.fail(pods[0])
    assert (world.state(), world.suspended, world.held) == (SUSPEND, True, False)


def test_failure_pauses_the_rollout_until_a_person_resumes_it(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.PAUSE)
    world.rest()
    assert (world.state(), world.suspended, world.held) == (SUSPEND, True, True)
    assert world.reasons.count("RolloutPaused") == 1
    world.request("Resume")
    world.rest()
    assert (world.suspended, world.held) == (False, False)
    assert world.reasons.count("RolloutContinued") == 1
    world.run(600)
    assert not world.held


def test_approval_continues_the_rollout(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.PAUSE)
    world.rest()
    world.request("Approve")
    world.rest()
    assert (world.suspended, world.held) == (False, False)


def test_newer_version_continues_the_rollout_and_ends_the_suspension_when_it_succeeds(kind: str) -> None:
    world, pod = failing(kind, on_failure=OnFailure.PAUSE)
    world.rest()
    assert world.held
    world.remove(pod)
    world.begin("v3")
    assert not world.held
    assert world.suspended
    world.make_up(world.replicas)
    world.remove(*[each for each in world.pods.values() if each.image != "v3"])
    world.run(300)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_rollout_that_a_person_paused_is_not_continued_by_the_reconciler() -> None:
    world, (pod,) = released("Deployment", on_failure=OnFailure.PAUSE)
    world.paused = True
    world.fail(pod)
    assert (world.state(), world.held) == (SUSPEND, False)
    world.request("Resume")
    world.rest()
    assert world.paused


def test_person_who_continues_a_paused_rollout_wins(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.PAUSE)
    world.rest()
    world.paused = False
    world.run(300)
    assert not world.paused
    assert world.suspended


def test_setting_blocking_wins_over_pause(kind: str) -> None:
    world, _ = failing(kind, on_failure=OnFailure.PAUSE)
    world.settings = Settings(blocking=False)
    world.run(60)
    assert (world.state(), world.suspended, world.held) == (SUSPEND, False, False)


def test_paused_rollout_does_not_continue_because_the_failed_pod_is_evicted(kind: str) -> None:
    world, pod = failing(kind, on_failure=OnFailure.PAUSE)
    world.rest()
    world.remove(pod)
    world.rest()
    (successor,) = world.make(1)
    world.rest()
    assert (world.state(), world.suspended, world.held) == (RUNNING, True, True)
    world.up(successor)
    world.run(300)
    assert (world.suspended, world.held) == (True, False), "the successor passed"
    assert world.reasons.count("RolloutContinued") == 1


def test_rollback_withdrawn_because_the_failed_pod_was_evicted_begins_again_when_another_pod_fails(kind: str) -> None:
    world, (first, second) = released(kind, pods=2, on_failure=OnFailure.ROLLBACK)
    world.run(70)
    assert world.judge(first, "unpass")
    while world.state() != ROLLBACK:
        assert world.reconcile()
    world.remove(first)
    world.rest()
    assert world.reasons.count("RollbackWithdrawn") == 1
    world.fail(second)
    assert world.image == "v1"


@pytest.mark.parametrize("ends", [False, True])
def test_paused_rollout_does_not_continue_before_a_pod_replaces_the_failed_one(kind: str, *, ends: bool) -> None:
    """The other pods of the version have passed before."""
    world, pod = failing(kind, on_failure=OnFailure.PAUSE, **({"pause_seconds": 600} if ends else {}))
    world.rest()
    world.make_up(1)
    world.run(60)
    world.remove(pod)
    world.run(60)
    assert (world.state(), world.suspended, world.held) == (SUSPEND, True, True)
    (successor,) = world.make(1)
    world.rest()
    assert (world.state(), world.suspended, world.held) == (RUNNING, True, True)
    world.up(successor)
    world.run(300)
    assert (world.suspended, world.held) == (True, False), "the successor passed"
    assert world.reasons.count("RolloutContinued") == 1


def test_paused_rollout_continues_if_a_person_corrects_the_verdict_or_resumes_after_the_pod_is_gone(kind: str) -> None:
    for corrected in (True, False):
        world, pod = failing(kind, on_failure=OnFailure.PAUSE)
        world.rest()
        world.make_up(1)
        world.run(60)
        if corrected:
            world.judge(pod, "pass")
        else:
            world.remove(pod)
            world.rest()
            world.request("Resume")
        world.rest()
        assert not world.held


def test_pause_ends_with_a_rollback_if_no_pod_replaces_the_failed_one(kind: str) -> None:
    world, pod = failing(kind, on_failure=OnFailure.PAUSE, pause_seconds=600)
    world.rest()
    world.make_up(1)
    world.run(60)
    world.remove(pod)
    world.run(600)
    assert is_restored(world)
    assert world.said(ROLLED_BACK, "v2") == ("True", "VerificationFailed")
