"""What a person's request does, in every state of a release, also if the reconciler dies after any of its writes."""

import pytest

from altershield.api import labels
from altershield.api.change_workload import SourceRef
from altershield.api.check_results import CheckState
from altershield.api.condition_types import ConditionType
from altershield.api.ops_config import Settings
from altershield.api.workload_requests import MAX_ACTIONS, Action, Result, Verb
from reconciler.cluster.verdicts import why_waiting
from reconciler.releases.terms.snapshot import RollbackReason

from .request_table import (
    APPROVE,
    DONE,
    REFUSED,
    REPAIR,
    RESUME,
    RETRY,
    ROLL_BACK,
    TABLE,
    UNCHANGED,
    Make,
    broken,
    newest,
    not_started,
    order_refused,
    passed,
    suspended,
    waiting,
    waiting_on_server,
    write_refused,
)
from .scenarios import (
    FAILED,
    ROLLBACK,
    ROLLED_BACK,
    RUNNING,
    SUCCESS,
    SUSPEND,
    VERIFIED,
    is_restored,
    second_release,
)
from .world import Killed, World, fingerprint


def ask(world: World, verb: Verb, *, to: str = "", image: str = "") -> Action:
    """Ask, and return the answer."""
    before = world.status(image).actions
    world.request(verb, to=to, image=image)
    return answer(world, verb, before, image)


def answer(world: World, verb: Verb, before: tuple[Action, ...] = (), image: str = "") -> Action:
    for _ in range(5):
        world.reconcile()
        if world.status(image).request is None:
            break
    status = world.status(image)
    assert status.request is None
    assert status.actions[:-1] == before, "one answer for one request"
    found = status.actions[-1]
    assert (found.verb, found.by, found.reason) == (verb, "alice", "seen")
    assert found.outcome
    return found


CASES = [
    pytest.param(make, verb, *wanted, id=f"{verb}-{make.__name__}")
    for make, row in TABLE.items()
    for verb, wanted in row.items()
]


@pytest.mark.parametrize(("make", "verb", "wanted", "state", "label"), CASES)
def test_each_request_in_each_state_has_one_answer_and_the_documented_effect(
    kind: str, make: Make, verb: Verb, wanted: Result, state: str, label: bool
) -> None:
    world = make(kind)
    image = world.image
    found = ask(world, verb, image=image)
    assert found.result == wanted, found.outcome
    assert ("nothing was changed" in found.outcome) or wanted != UNCHANGED or "already" in found.outcome
    world.run(30)
    if state == "v1":
        assert world.image == "v1", found.outcome
        assert world.suspended == label
        return
    assert (world.state(image), world.suspended) == (state, label), found.outcome
    reason = "RequestCarriedOut" if wanted == DONE else "RequestNotCarriedOut"
    assert reason in world.reasons or verb == ROLL_BACK


@pytest.mark.parametrize(("make", "verb", "wanted", "state", "label"), CASES)
def test_request_ends_the_same_if_the_reconciler_dies_before_any_of_its_writes(
    make: Make, verb: Verb, wanted: Result, state: str, label: bool
) -> None:
    for fatal in range(1, 12):
        world = make("Deployment")
        image = world.image
        world.request(verb, image=image)
        left = fatal

        def strike(what: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Killed(what)

        world.write_hook = strike
        try:
            world.rest()
            killed = False
        except Killed:
            killed = True
        world.write_hook = lambda what: None
        world.die()
        world.run(30)
        answers = [each for each in world.status(image).actions if each.verb == verb]
        assert [each.result for each in answers] == [wanted], f"killed at write {fatal}"
        if state == "v1":
            assert world.image == "v1"
        else:
            assert (world.state(image), world.suspended) == (state, label), f"killed at write {fatal}"
        if not killed:
            return
    raise AssertionError("more writes than expected")


@pytest.mark.parametrize(("make", "verb", "wanted", "state", "label"), CASES)
def test_request_that_is_repeated_changes_nothing_more(
    make: Make, verb: Verb, wanted: Result, state: str, label: bool
) -> None:
    world = make("Deployment")
    image = world.image
    ask(world, verb, image=image)
    world.run(30)
    before = world.status(image)
    world.request(verb, image=image)
    world.run(30)
    after = world.status(image)
    assert world.image == ("v1" if state == "v1" else image)
    assert (after.status, world.suspended) == (before.status, label)
    assert len(after.actions) == len(before.actions) + 1


# what follows


def test_approve_writes_the_verdict_pass_in_the_name_of_the_user(kind: str) -> None:
    world = suspended(kind)
    ask(world, APPROVE)
    results = [each for batch in world.batches.values() for each in batch.status.pod_results]
    assert [(each.verdict, each.by, each.message) for each in results] == [("pass", "alice", "approved by alice: seen")]


def test_pod_that_fails_after_an_approval_suspends_the_release_again(kind: str) -> None:
    world = suspended(kind)
    ask(world, APPROVE)
    world.rest()
    other = next(pod for pod in world.pods.values() if pod.image == "v2")
    world.fail(other)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def test_approved_pod_that_was_up_and_broke_does_not_fail_the_release_again(kind: str) -> None:
    world = broken(kind)
    ask(world, APPROVE)
    assert (world.status().defense_check_fail_pods, world.status().down_pods) == ((), ())
    world.run(500)
    assert (world.state(), world.suspended) == (RUNNING, False)
    world.die()
    world.run(500)
    assert (world.state(), world.suspended) == (RUNNING, False)


def test_resumed_release_is_suspended_again_only_if_another_pod_fails(kind: str) -> None:
    world = suspended(kind)
    ask(world, RESUME)
    world.die()
    world.run(300)
    assert (world.state(), world.suspended) == (SUSPEND, False)
    assert world.said(VERIFIED)[0] == "False"
    other = next(pod for pod in world.pods.values() if pod.image == "v2")
    world.fail(other)
    assert (world.state(), world.suspended) == (SUSPEND, True)
    assert world.reasons.count("ReleaseSuspended") == 2


def test_release_after_a_resumed_one_passes_and_is_not_suspended(kind: str) -> None:
    world = suspended(kind)
    ask(world, RESUME)
    world.begin("v3")
    assert (world.state(), world.suspended) == (RUNNING, False)


def test_retry_verifies_a_pod_again_that_a_person_failed(kind: str) -> None:
    world = suspended(kind)
    numbers, pod = set(world.batches), newest(world)
    ask(world, RETRY)
    world.run(30)
    assert not [each for batch in world.batches.values() for each in batch.status.pod_results]
    assert len(set(world.batches) - numbers) == 1
    assert world.status().defense_check_fail_pods == ()
    assert f"pod {pod.name} of version" in world.status().actions[-1].outcome


def test_failure_after_a_retry_suspends_a_resumed_release_again() -> None:
    world = suspended("Deployment")
    ask(world, RESUME)
    ask(world, RETRY)
    world.run(30)
    assert world.status().resumption.since_unix == 0
    world.fail(newest(world))
    assert (world.state(), world.suspended) == (SUSPEND, True)


@pytest.mark.parametrize("make", [waiting, waiting_on_server])
def test_retry_checks_a_batch_again_that_waits_for_a_person(kind: str, make: Make) -> None:
    world = make(kind)
    (before,) = [each for name, each in world.batches.items() if fingerprint("v2") in name]
    ask(world, RETRY)
    world.run(60)
    (after,) = [each for name, each in world.batches.items() if fingerprint("v2") in name]
    if make is waiting:
        assert (after.metadata.name != before.metadata.name, after.status.checks) == (True, ())
        return
    (entry,) = after.status.checks
    assert (after.metadata.name, after.status.change_pod_id) == (before.metadata.name, "node-1")
    assert (entry.state, entry.repeated, entry.handle, why_waiting(after)) == (CheckState.RUNNING, True, "", "")


def test_retried_pod_has_the_start_timeout_once_more(kind: str) -> None:
    world = not_started(kind)
    world.settings = Settings(rollback=False)
    ask(world, RETRY)
    world.run(110)
    assert world.state() == RUNNING
    world.run(20)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def test_retried_pod_that_comes_up_passes(kind: str) -> None:
    world = not_started(kind)
    ask(world, RETRY)
    world.up(newest(world), *world.make(2))
    world.remove(*[pod for pod in world.pods.values() if pod.image == "v1"])
    world.run(30)
    assert (world.state(), world.suspended) == (SUCCESS, False)


def test_retry_of_a_refused_rollback_writes_again_at_once(kind: str) -> None:
    world = write_refused(kind)
    world.write_refused = ""
    ask(world, RETRY)
    world.rest()
    assert is_restored(world)


def test_rollback_to_a_named_version(kind: str) -> None:
    world = passed(kind)
    world.roll_out("v3")
    found = ask(world, ROLL_BACK, to=fingerprint("v1"), image="v3")
    assert found.result == DONE
    assert fingerprint("v1") in found.outcome
    world.rest()
    assert is_restored(world)


@pytest.mark.parametrize(("to", "result", "words"), [("nothing", REFUSED, "no version nothing"), ("v2", UNCHANGED, "")])
def test_rollback_to_an_unknown_or_the_current_version_keeps_the_state(to: str, result: Result, words: str) -> None:
    world = suspended("Deployment")
    found = ask(world, ROLL_BACK, to=fingerprint(to) if to == "v2" else to)
    assert (found.result, words in found.outcome) == (result, True)
    assert (world.state(), world.suspended) == (SUSPEND, True)


def test_second_rollback_request_does_not_go_back_one_version_more() -> None:
    world = passed("Deployment")
    world.roll_out("v3")
    ask(world, ROLL_BACK, image="v3")
    world.rest()
    assert world.image == "v2"
    found = ask(world, ROLL_BACK)
    assert (found.result, world.image) == (UNCHANGED, "v2")
    assert "to go back further, name a version" in found.outcome


def test_rollback_while_another_one_is_in_progress_is_refused() -> None:
    world = write_refused("Deployment")
    found = ask(world, ROLL_BACK, to="v0")
    assert (found.result, world.state()) == (REFUSED, ROLLBACK)


def test_approve_of_a_refused_rollback_withdraws_it() -> None:
    world = write_refused("Deployment")
    looks = world.looks
    found = ask(world, APPROVE)
    assert "withdrawn" in found.outcome
    assert world.looks > looks, "the API server knows whether the rollback has been carried out"
    assert (world.status().rollback_to, world.status().rollback_target) == ("", SourceRef())
    world.write_refused = ""
    world.run(500)
    assert world.image == "v2"
    assert world.said(ROLLED_BACK) == ("False", RollbackReason.WITHDRAWN)


def test_request_about_a_version_that_is_not_the_current_one_changes_nothing() -> None:
    world = suspended("Deployment")
    world.begin_repair("v3")
    for verb in Verb:
        found = ask(world, verb, image="v2")
        assert found.result == UNCHANGED
        assert "is not the current version" in found.outcome
    world.rest()
    assert (world.state(), world.suspended, world.image) == (RUNNING, True, "v3")


def test_repair_lets_exactly_one_release_pass() -> None:
    world = suspended("Deployment")
    ask(world, REPAIR)
    assert world.own_labels[labels.IGNORED_SUSPEND] == "true"
    world.begin("v3")
    assert labels.IGNORED_SUSPEND not in world.own_labels
    assert world.suspended


def test_repair_before_the_label_suspend_is_written_lets_the_next_release_pass() -> None:
    """The label `suspend` removes the label of an earlier repair."""
    world = suspended("Deployment")
    del world.own_labels[labels.SUSPEND]
    assert ask(world, REPAIR).result == DONE
    assert world.suspended
    assert world.own_labels[labels.IGNORED_SUSPEND] == "true"


def test_repair_lets_a_version_pass_that_was_rolled_back() -> None:
    world, _ = second_release("Deployment")
    world.run(121)
    assert is_restored(world)
    world.run(30)
    assert not world.suspended
    answer = ask(world, REPAIR, image="v1")
    assert (answer.result, answer.outcome) == (DONE, "the next release passes, once")
    assert world.own_labels[labels.IGNORED_SUSPEND] == "true"


def test_resume_counts_a_pod_that_failed_just_before() -> None:
    world = suspended("Deployment")
    world.judge(next(pod for pod in world.pods.values() if pod.image == "v2"), "unpass")
    ask(world, RESUME)
    world.run(30)
    assert (world.state(), world.suspended) == (SUSPEND, False)


def test_retry_of_a_refused_order_reports_the_release_again() -> None:
    world = order_refused("Deployment")
    ask(world, RETRY)
    assert world.condition(ConditionType.REPORTED) is None
    assert world.state() == "Init"


@pytest.mark.parametrize("verb", list(Verb))
def test_request_about_an_earlier_release_of_the_version_is_refused(verb: Verb) -> None:
    """The person knew the earlier release only."""
    world = suspended("Deployment")
    ask(world, RESUME)
    world.begin("v1")
    world.release("v2")
    world.request(verb)
    before = dict(world.own_labels)
    assert answer(world, verb, world.status().actions[:1]).result == REFUSED
    assert "was released again since this request was made" in world.status().actions[-1].outcome
    assert [each.verb for each in world.status().actions] == [RESUME, verb]
    assert world.status().resumption.since_unix == 0
    assert world.image == "v2"
    assert {**world.own_labels, labels.DEFENSE_STATUS: ""} == {**before, labels.DEFENSE_STATUS: ""}
    assert world.status().request is None
    assert ask(world, APPROVE).result == DONE, "a request about the new release is carried out"


def test_only_the_newest_actions_are_kept() -> None:
    world = passed("Deployment")
    for _ in range(MAX_ACTIONS + 3):
        world.request(APPROVE)
        world.rest()
    assert len(world.status().actions) == MAX_ACTIONS


def test_verb_of_a_newer_release_of_altershield_is_refused() -> None:
    world = passed("Deployment")
    world.request("Explode")
    world.rest()
    assert world.status().actions[-1].result == REFUSED


def test_approval_does_not_pass_a_pod_that_fails_after_the_request() -> None:
    world = World("Deployment")
    world.roll_out("v1")
    world.begin("v2")
    first, second = world.make_up(2)
    world.run(100)
    world.fail(first)
    world.request("Approve")
    assert world.judge(second, "unpass")  # before the reconciler answers
    world.rest()
    assert world.state() == "Suspend"


# separation of duties


OWN_CASES = [each for each in CASES if each.values[1] is not ROLL_BACK]


@pytest.mark.parametrize(("make", "verb", "wanted", "state", "label"), OWN_CASES)
def test_user_who_released_what_failed_decides_nothing_about_it(
    make: Make, verb: Verb, wanted: Result, state: str, label: bool
) -> None:
    world = make("Deployment")
    image = world.image
    before = world.state(image), world.suspended
    world.released_by("alice", image)
    found = ask(world, verb, image=image)
    assert found.result == REFUSED
    assert found.outcome.startswith(f"alice released version {fingerprint(image)}, so another user has to decide")
    assert found.outcome.endswith("nothing was changed")
    assert (world.state(image), world.suspended) == before


@pytest.mark.parametrize(("make", "verb", "wanted", "state", "label"), CASES)
def test_other_users_decide_as_without_separation_of_duties(
    make: Make, verb: Verb, wanted: Result, state: str, label: bool
) -> None:
    world = make("Deployment")
    image = world.image
    world.released_by("bob", image)
    assert ask(world, verb, image=image).result == wanted


def test_user_who_released_what_failed_may_go_back(kind: str) -> None:
    world = suspended(kind)
    world.released_by("alice")
    assert ask(world, ROLL_BACK, image="v2").result == DONE
    world.run(30)
    assert world.image == "v1"


def test_user_who_released_what_was_rolled_back_does_not_let_it_pass(kind: str) -> None:
    world, _ = second_release(kind)
    world.run(121)
    world.run(30)
    assert (world.image, world.state("v2")) == ("v1", FAILED)
    world.released_by("alice", "v2")
    assert ask(world, REPAIR, image="v1").result == REFUSED
    world.released_by("bob", "v2")
    assert ask(world, REPAIR, image="v1").result == DONE


def rolled_back_by_alice(kind: str) -> World:
    """v1 serves again after the rollback of v2, which alice released."""
    world, _ = second_release(kind)
    world.run(121)
    world.run(30)
    assert (world.image, world.state("v2")) == ("v1", FAILED)
    world.released_by("alice", "v2")
    return world


def test_user_who_released_what_was_rolled_back_does_not_go_back_to_it(kind: str) -> None:
    world = rolled_back_by_alice(kind)
    found = ask(world, ROLL_BACK, to=fingerprint("v2"), image="v1")
    assert found.result == REFUSED
    assert f"alice released version {fingerprint('v2')}, so another user has to decide about it" in found.outcome
    world.run(30)
    assert world.image == "v1"


def test_state_that_names_no_user_does_not_go_back_to_what_was_rolled_back(kind: str) -> None:
    world = rolled_back_by_alice(kind)
    before = world.state("v1")
    world.ask_rollback(fingerprint("v2"))
    world.run(30)
    assert (world.image, world.state("v1")) == ("v1", before)


def test_another_user_goes_back_to_what_was_rolled_back(kind: str) -> None:
    world = rolled_back_by_alice(kind)
    world.released_by("bob", "v2")
    assert ask(world, ROLL_BACK, to=fingerprint("v2"), image="v1").result == DONE
    world.run(30)
    assert world.image == "v2"


def test_user_who_released_what_suspended_the_workload_does_not_go_back_to_it(kind: str) -> None:
    world = suspended(kind)
    world.begin_repair("v3")
    world.released_by("alice", "v2")
    assert ask(world, ROLL_BACK, to=fingerprint("v2"), image="v3").result == REFUSED
    world.released_by("bob", "v2")
    assert ask(world, ROLL_BACK, to=fingerprint("v2"), image="v3").result == DONE


@pytest.mark.parametrize("verb", [APPROVE, RESUME, RETRY])
def test_user_who_released_what_was_rolled_back_decides_about_the_version_of_another_user(verb: Verb) -> None:
    world, _ = second_release("Deployment")
    world.run(121)
    world.run(30)
    assert (world.image, world.state("v2")) == ("v1", FAILED)
    world.settings = Settings(rollback=False)
    world.begin("v3")
    world.make(1)
    world.run(121)
    assert (world.state("v2"), world.state(), world.suspended) == (FAILED, SUSPEND, True)
    world.released_by("alice", "v2")
    world.released_by("bob", "v3")
    assert ask(world, verb, image="v3").result == DONE
