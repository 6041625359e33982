"""Releases that a check judges after all of their pods have passed."""

from collections.abc import Callable

import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.check_specs import CheckPhase, CheckSpec, HttpCheck, OnUnknown
from altershield.api.condition_types import Giver
from altershield.api.policy import OnFailure
from altershield.api.workload_requests import Verb
from reconciler.checks.check import Fail, Pass, Unknown
from tests.unit.reconciler.releases.policies import policy, text
from tests.unit.reconciler.releases.scenarios import (
    FAILED,
    ROLLED_BACK,
    RUNNING,
    STALLED,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    is_restored,
)
from tests.unit.reconciler.releases.world import KINDS, Killed, World

BAD = Fail("12 % of requests fail")


def check(**options: object) -> CheckSpec:
    return CheckSpec("end", phase=CheckPhase.POST_RELEASE, http=HttpCheck("http://a"), **options)  # type: ignore[arg-type]


def released(kind: str, answer: Pass | Fail | Unknown, *checks: CheckSpec, **rules: object) -> World:
    """A release of which all pods have passed. v1 passed before."""
    world = World(kind)
    old = world.roll_out("v1")
    world.policy = policy(checks=checks or (check(),), **rules)
    world.check_answers["end"] = answer
    world.begin("v2")
    world.make_up(world.replicas)
    world.remove(*old)
    world.run(30)
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_release_succeeds_after_its_last_check_has_passed(kind: str) -> None:
    world = released(kind, Pass("all good"))
    assert world.state() == SUCCESS
    assert world.checks_asked == ["end"]
    world.run(3600)
    assert world.checks_asked == ["end"]


def test_check_runs_when_all_pods_have_passed_and_not_before() -> None:
    world = World("Deployment")
    old = world.roll_out("v1")
    world.policy = policy(checks=(check(),))
    world.check_answers["end"] = Pass()
    world.begin("v2")
    world.make_up(2)
    world.run(30)
    assert (world.state(), world.checks_asked) == (RUNNING, [])
    world.make_up(1)
    world.remove(*old)
    world.run(30)
    assert (world.state(), world.checks_asked) == (SUCCESS, ["end"])


@pytest.mark.parametrize("kind", KINDS)
def test_failure_suspends_the_release_and_names_the_check(kind: str) -> None:
    world = released(kind, BAD)
    world.run(3600)
    assert world.state() == SUSPEND
    assert world.suspended
    assert world.said(VERIFIED) == ("False", Giver.CHECK)
    assert "end: 12 % of requests fail" in world.message(VERIFIED)
    assert "12 % of requests fail" in text(world, "ReleaseSuspended")
    assert world.checks_asked == ["end"]
    assert all(not each.status.pod_results for each in world.batches.values()), "no pod has failed"


@pytest.mark.parametrize("kind", KINDS)
def test_failure_rolls_back_if_the_policy_says_so(kind: str) -> None:
    world = released(kind, BAD, on_failure=OnFailure.ROLLBACK)
    assert is_restored(world)
    assert world.state("v2") == FAILED
    assert "12 % of requests fail" in world.message(ROLLED_BACK, "v2")


@pytest.mark.parametrize("on_unknown", OnUnknown)
def test_check_without_a_result_does_what_the_policy_says(on_unknown: OnUnknown) -> None:
    world = released("Deployment", Unknown("no answer"), check(on_unknown=on_unknown))
    states = {OnUnknown.PASS: SUCCESS, OnUnknown.HOLD: RUNNING, OnUnknown.FAIL: SUSPEND}
    assert world.state() == states[on_unknown]
    if on_unknown is OnUnknown.HOLD:
        assert world.said(STALLED) == ("True", "CheckHeld")
        world.request(Verb.APPROVE)
        world.rest()
        assert world.state() == SUCCESS


@pytest.mark.parametrize(("verb", "asked"), [(Verb.APPROVE, 1), (Verb.RETRY, 2)])
def test_person_overrules_the_check_or_has_it_run_again(verb: Verb, asked: int) -> None:
    world = released("Deployment", BAD)
    world.check_answers["end"] = Pass()
    world.request(verb)
    world.run(60)
    assert (world.state(), len(world.checks_asked)) == (SUCCESS, asked)
    assert not world.suspended


def test_version_that_is_released_again_is_checked_again() -> None:
    world = released("Deployment", Pass())
    for image in ("v3", "v2"):
        old = world.of(world.image)
        world.begin(image)
        world.make_up(world.replicas)
        world.remove(*old)
        world.run(30)
    assert (world.state(), len(world.checks_asked)) == (SUCCESS, 3)


def test_pod_that_fails_while_the_check_runs_fails_the_release() -> None:
    world = released("Deployment", Unknown("later"), check(on_unknown=OnUnknown.HOLD))
    assert world.judge(next(iter(world.pods.values())), "unpass")
    world.rest()
    assert (world.state(), world.said(VERIFIED)) == (SUSPEND, ("False", Giver.PERSON))


@pytest.mark.parametrize("number", range(17))
@pytest.mark.parametrize(("answer", "state"), [(Pass(), SUCCESS), (BAD, SUSPEND)])
def test_killed_reconciler_comes_to_the_same_end(number: int, answer: Pass | Fail, state: WorkloadState) -> None:
    world = World("Deployment")
    old = world.roll_out("v1")
    world.policy = policy(checks=(check(),))
    world.check_answers["end"] = answer
    left = [number]

    def kill_once(what: str) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise Killed

    def survived(act: Callable[[], object]) -> None:
        try:
            act()
        except Killed:
            world.die()
            world.rest()

    world.write_hook = kill_once
    survived(lambda: world.begin("v2"))
    world.make_up(world.replicas)
    world.remove(*old)
    survived(lambda: world.run(15))
    survived(lambda: world.run(60))
    assert world.state() == state
    assert left[0] < 0, "it was killed"
    assert len([each for each in world.batches.values() if each.spec.phase]) == 1
