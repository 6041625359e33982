"""The tree of steps, and how far a wait has come."""

import msgspec
import pytest

from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus
from altershield.api.check_results import CheckResult
from altershield.api.check_specs import CheckPhase
from altershield.api.meta import Condition
from altershield.api.policy import Mode
from altershield.api.rollout import Phase, Rollout, RolloutStatus, Step, WaitingFor
from altershield.releases import Outcome
from altershield.views.releases.goals import Goal, What, demand_step, parse_goal, reached
from altershield.views.releases.model import Release, Snapshot, StatusError, outcomes
from altershield.views.releases.steps import has_steps
from altershield.views.releases.tree import tree
from kube_base.errors import UsageError
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.releases.steps import NOW, ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import RUNNING, V1, V2, in_steps, release, scaled, stored, workload


def shown(status: RolloutStatus = SOAKING) -> Release:
    return Release(scaled(10), stored(in_steps(ROLLOUT, status)))


def batch(at: int, *checks: CheckResult) -> ChangePod:
    spec = ChangePodSpec(f"web--x--{V1}", rfc3339(at), at, ())
    return ChangePod(ObjectMeta(name=f"web--x--{V1}--x--1"), spec, ChangePodStatus(checks=checks))


def test_tree_has_steps_checks_and_the_earliest_end() -> None:
    batches = [
        batch(NOW - 800, CheckResult("errors", "PostBatch", "Passed")),
        batch(NOW - 20, CheckResult("errors", "PostBatch", "Passed"), CheckResult("smoke", "PostBatch", "Failed")),
        batch(NOW - 10, CheckResult("errors", "PostBatch", "Running"), CheckResult("smoke", "PostBatch", "Passed")),
    ]
    assert tree(shown(), batches, NOW, "altershield") == [
        f"Steps of deployment.apps/web, version {V1[:12]}:",
        f"├─ 1   1 pod      Passed              {rfc3339(NOW - 900)} to {rfc3339(NOW - 50)} (14m); promoted by ann",
        "│       checks: errors/PostBatch Passed",
        "├─ 2   1 pod      Skipped",
        f"├─ 3   3 pods     Soaking             3 updated, 3 passed; soak until {rfc3339(NOW + 40)} (in 40s); approval "
        "by a person",
        "│       checks: errors/PostBatch Running, smoke/PostBatch Failed",
        "└─ 4   10 pods    Pending             soak 2m",
        f"Earliest end: {rfc3339(NOW + 160)} (in 2m40s), without waiting for pods and for people",
    ]


def test_tree_says_what_it_waits_for_and_the_command_that_promotes() -> None:
    waiting = msgspec.structs.replace(SOAKING, phase=Phase.WAITING_FOR_APPROVAL)
    assert tree(shown(waiting), [], NOW, "kubectl altershield")[-1] == (
        "To go on:     kubectl altershield promote deployment/web -n shop"
    )
    held = msgspec.structs.replace(SOAKING, waiting_for=(WaitingFor.QUOTA, WaitingFor.PERSON), held_by="a\x1bnn")
    assert tree(shown(held), [], NOW, "altershield")[-4:-2] == [
        "Waits for:    a ResourceQuota refuses a further pod",
        "              a nn holds the release until somebody promotes it",
    ]


def checks_of_release(phase: CheckPhase, at: int, status: ChangePodStatus) -> ChangePod:
    found = batch(at)
    spec = msgspec.structs.replace(found.spec, phase=phase)
    return msgspec.structs.replace(found, spec=spec, status=status)


def test_tree_says_what_a_check_before_the_step_said() -> None:
    held = msgspec.structs.replace(SOAKING, phase=Phase.HELD, waiting_for=(WaitingFor.CHECK,))
    said = Condition("Verified", "Unknown", "TriedAgain", "smoke: the server answered HTTP 500")
    status = ChangePodStatus(checks=(CheckResult("smoke", "Pre", "Failed"),), conditions=(said,))
    lines = tree(shown(held), [checks_of_release(CheckPhase.PRE_BATCH, NOW - 10, status)], NOW, "altershield")
    assert "│       checks: smoke/PreBatch Failed" in lines
    assert lines[-3:-1] == [
        "Waits for:    a check before this step has not passed",
        "Checks say:   smoke: the server answered HTTP 500",
    ]


def test_tree_has_the_checks_after_the_release() -> None:
    done = msgspec.structs.replace(SOAKING, phase=Phase.DONE, step=4)
    status = ChangePodStatus(checks=(CheckResult("end", "Post", "Running"),))
    lines = tree(shown(done), [checks_of_release(CheckPhase.POST_RELEASE, NOW - 10, status)], NOW, "altershield")
    assert lines[-1] == "After the release: end/PostRelease Running"


def observed(*conditions: Condition) -> Release:
    found = in_steps(ROLLOUT, RolloutStatus())
    policy = msgspec.structs.replace(found.spec.policy, mode=Mode.OBSERVE)
    found = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, policy=policy))
    status = msgspec.structs.replace(found.status, conditions=conditions)
    return Release(scaled(10), stored(msgspec.structs.replace(found, status=status)))


def test_tree_of_an_observed_release_has_the_steps_that_it_would_take() -> None:
    lines = tree(observed(), [], NOW, "altershield")
    why = "the DefensePolicy shop/steps only observes, so nothing is held:"
    assert lines[0] == f"Steps of deployment.apps/web with mode enforce; {why}"
    assert lines[1:3] == ["   1   1 pod      soak 10m", "   3   3 pods     soak 60s"]
    assert lines[-1] == "Outcome:      the release has not ended"
    ended = Condition("StepsObserved", "False", "WouldStop", "it would have stopped at step 1")
    assert tree(observed(ended), [], NOW, "altershield")[-1] == "Outcome:      it would have stopped at step 1"
    assert has_steps(observed())


def test_tree_names_the_nodes_of_a_step() -> None:
    steps = Rollout(steps=(Step(node_selector={"pool": "canary"}), Step("50%")))
    first = RolloutStatus(phase=Phase.HELD, step=1, steps=3, waiting_for=(WaitingFor.NODE_SELECTOR,))
    lines = tree(Release(scaled(10), stored(in_steps(steps, first))), [], NOW, "altershield")
    assert "?" in lines[1]
    assert "nodes pool=canary" in lines[1]
    assert any(line.startswith("Waits for:    no ready node with the labels") for line in lines)
    assert lines[-1] == "To go on:     altershield promote deployment/web -n shop"


def test_tree_of_a_failed_release_has_no_end() -> None:
    lines = tree(shown(msgspec.structs.replace(SOAKING, phase=Phase.STOPPED, failed_step=3)), [], NOW, "altershield")
    assert lines[3] == "├─ 3   3 pods     Stopped             3 updated, 3 passed"
    assert len(lines) == 5


@pytest.mark.parametrize(
    "of",
    [
        Release(workload(), stored(release(RUNNING))),
        Release(workload(), None),
        Release(workload(version=V2), stored(in_steps(ROLLOUT, SOAKING))),
    ],
    ids=["without steps", "not processed", "superseded"],
)
def test_other_releases_have_no_tree(of: Release) -> None:
    assert not has_steps(of)
    assert tree(of, [], NOW, "altershield") == []


def test_message_of_a_present_release_begins_with_its_step() -> None:
    assert shown().message == f"step 3 of 4: its 3 pods have to stay verified until {rfc3339(NOW + 40)}"
    assert shown(msgspec.structs.replace(SOAKING, phase=Phase.DONE)).message == ""
    superseded = Release(workload(version=V2), stored(in_steps(ROLLOUT, SOAKING)))
    assert superseded.message == "superseded"


def test_goals_are_a_step_verified_or_done() -> None:
    assert parse_goal("step=12") == Goal(What.STEP, 12)
    assert parse_goal("verified") == Goal(What.VERIFIED)
    assert parse_goal("done") == Goal()
    for text in ("step=0", "step", "step=2.5", "soaked", ""):
        with pytest.raises(UsageError, match="write step=2, verified or done"):
            parse_goal(text)


def test_release_under_way_that_has_reached_the_goal_counts_as_a_success() -> None:
    snapshot = Snapshot([scaled(10)], [stored(in_steps(ROLLOUT, SOAKING))])
    assert outcomes(snapshot) == [Outcome.UNDER_WAY]
    for goal, wanted in (
        (Goal(), Outcome.UNDER_WAY),
        (Goal(What.VERIFIED), Outcome.SUCCEEDED),
        (Goal(What.STEP, 1), Outcome.SUCCEEDED),
        (Goal(What.STEP, 3), Outcome.UNDER_WAY),
    ):
        assert outcomes(snapshot, arrived=lambda each, goal=goal: reached(goal, each)) == [wanted]  # type: ignore[misc]


def test_release_that_is_not_processed_has_reached_no_goal() -> None:
    for of in (Release(workload(), None), Release(workload(), stored(release(RUNNING)))):
        assert not any(reached(goal, of) for goal in (Goal(), Goal(What.VERIFIED), Goal(What.STEP, 1)))


def test_step_that_the_release_does_not_have_is_an_error() -> None:
    demand_step(Goal(What.STEP, 4), [shown(), Release(workload(), None)])
    with pytest.raises(StatusError, match=r"deployment/web has 4 steps, so it never passes step 5"):
        demand_step(Goal(What.STEP, 5), [shown()])
