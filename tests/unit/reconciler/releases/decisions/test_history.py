"""When the history changes, and what is kept of a release."""

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef
from altershield.api.meta import Condition
from altershield.api.rollout import PassedStep, RolloutStatus
from altershield.api.workload_requests import MAX_ACTIONS, Action
from altershield.releases.history import CheckOutcome, Record, Way
from altershield.workloads.meta import NO_OWNER
from kube_base.times import rfc3339
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.releases.decisions.history import check_outcomes, in_use, logged, record, superseded, way, with_history
from reconciler.releases.terms.effects import Decision, KeepHistory
from tests.unit.altershield.releases.builders import NOW, V1, V2, release, workload


def of(state: str, **status: object) -> Release:
    found = release(V1)
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, status=state, **status))


def is_kept(before: Release, after: ChangeWorkloadStatus | None) -> bool:
    decision = with_history(before, Decision(after))
    assert decision.status is after
    return decision.before == (KeepHistory(after),) if decision.before and after is not None else False


@pytest.mark.parametrize(
    ("state", "known", "applied", "kept"),
    [
        ("Success", "", "d1", True),
        ("Success", "d1", "d2", True),
        ("Suspend", "d1", "d2", True),
        ("Success", "d1", "d1", False),
        ("Success", "d1", None, False),  # the workload has another version
        ("Running", "", "d1", False),  # it is kept when the release ends
    ],
)
def test_what_clients_stored_anew_after_the_end_is_kept(
    state: str, known: str, applied: str | None, kept: bool
) -> None:
    before = of(state, applied=known)
    decision = with_history(before, Decision(), applied)
    wanted = msgspec.structs.replace(before.status, applied=applied or "")
    assert decision == (Decision(wanted, before=(KeepHistory(wanted),)) if kept else Decision())


def test_end_of_a_release_keeps_what_clients_stored() -> None:
    before = of("Running", applied="d1")
    after = msgspec.structs.replace(before.status, status="Success")
    decision = with_history(before, Decision(after), "d2")
    assert decision.status == msgspec.structs.replace(after, applied="d2")
    assert decision.before == (KeepHistory(decision.status),)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("Running", "Success", True),
        ("Running", "Suspend", True),
        ("Init", "Failed", True),
        ("Running", "Rollback", True),
        ("Success", "Suspend", True),
        ("Rollback", "Failed", True),
        ("Suspend", "Running", True),
        ("Init", "Running", False),
        ("Running", "TimeOutPreThreshold", False),
        ("Success", "Success", False),
        ("Suspend", "Suspend", False),
    ],
)
def test_release_is_kept_if_it_ends_or_ends_in_another_way(before: str, after: str, kept: bool) -> None:
    assert is_kept(of(before), of(after).status) is kept


def test_decision_without_a_status_keeps_nothing() -> None:
    assert not is_kept(of("Success"), None)


def test_release_is_kept_when_a_person_requested_its_rollback() -> None:
    """The person wrote the state Rollback, so that the intent does not change the state."""
    target = SourceRef("ReplicaSet", "web-1", "uid-1")
    assert is_kept(of("Rollback"), of("Rollback", rollback_target=target).status)
    assert not is_kept(of("Rollback", rollback_target=target), of("Rollback", rollback_target=target).status)
    assert not is_kept(of("Rollback", rollback_target=target), of("Rollback").status)


def action(second: int, verb: str = "Approve", result: str = "Done", outcome: str = "accepted") -> Action:
    """An action so many seconds after the release began."""
    return Action(verb, "alice", "seen", rfc3339(NOW + second), result, outcome)


@pytest.mark.parametrize(
    ("state", "result", "kept"),
    [
        ("Suspend", "Done", True),
        ("Suspend", "Unchanged", True),
        ("Success", "Refused", True),
        ("Running", "Done", True),
        ("Running", "Unchanged", False),
        ("Init", "Refused", False),
    ],
)
def test_release_is_kept_with_an_action_of_a_person(state: str, result: str, kept: bool) -> None:
    """One that changed nothing, before the release has ended, is kept when the release ends."""
    assert is_kept(of(state), of(state, actions=(action(1, result=result),)).status) is kept


def test_action_that_is_kept_already_keeps_nothing_again() -> None:
    earlier = of("Suspend", actions=(action(1),))
    assert not is_kept(earlier, earlier.status)


def actions_of(before: Release, after: Release, *known: Action) -> tuple[Action, ...]:
    return record(before, after.status, (), known).actions


def test_record_has_the_actions_of_earlier_releases_of_the_version() -> None:
    earlier, present = action(-100), action(5, "Resume")
    assert actions_of(of("Suspend"), of("Suspend", actions=(present,)), earlier) == (earlier, present)
    both = of("Suspend", actions=(earlier, present))
    assert actions_of(both, both, earlier, present) == (earlier, present)
    assert actions_of(of("Running"), of("Success"), earlier, present) == (earlier, present)


def test_action_that_is_decided_again_after_a_crash_is_in_the_record_once() -> None:
    crashed, again = action(5), action(6)
    after = of("Running", actions=(again,))
    assert actions_of(of("Suspend"), after, crashed) == (again,)
    assert actions_of(of("Suspend"), after, action(-5)) == (action(-5), again), "that of an earlier release stays"
    other = action(5, "Resume")
    assert actions_of(of("Suspend"), after, other) == (other, again)
    assert actions_of(after, after, crashed) == (crashed, again), "the status has no new action"


def test_record_has_the_newest_actions_and_cuts_long_ones() -> None:
    known = tuple(action(second - 100) for second in range(MAX_ACTIONS))
    newest = action(100, outcome="x" * 1000)
    found = actions_of(of("Suspend"), of("Running", actions=(newest,)), *known)
    assert found[:-1] == known[1:]
    assert found[-1].outcome == "x" * 255 + "…"


def test_record_names_the_user_of_the_annotation_and_the_end() -> None:
    conditions = (Condition("Verified", "False", "FailedByServer", "1 of 3 pods failed"),)
    ended = of("Suspend", conditions=conditions, entry_time_unix=100).status
    released = of("Running")
    spec = msgspec.structs.replace(released.spec, released_by="alice", release_time="2026-08-21T07:29:49Z")
    found = record(msgspec.structs.replace(released, spec=spec), ended, ())
    assert (found.released, found.released_by) == ("2026-08-21T07:29:49Z", "alice")
    assert (found.state, found.since, found.reason) == ("Suspend", "1970-01-01T00:01:40Z", "FailedByServer")
    assert "1 of 3 pods failed" in found.message


def test_record_without_the_annotation_has_no_user_and_the_time_of_the_change_workload() -> None:
    found = record(of("Running"), of("Success").status, ())
    assert (found.released_by, found.policy, found.mode) == ("", "", "")
    assert found.released


def test_earlier_releases_of_a_version_are_appended_and_do_not_change() -> None:
    first = logged(Record("t1", "alice", "Running"), None, Way.RELEASE, 1, again=False)
    ended = logged(Record("t1", "alice", "Success"), first, Way.AGAIN, 9, again=False)
    assert (ended.number, ended.way, ended.state, ended.earlier) == (1, Way.RELEASE, "Success", ())
    again = logged(Record("t3", "bob", "Failed"), ended, Way.ROLLBACK, 3, again=True)
    assert (again.number, again.way, again.earlier) == (3, Way.ROLLBACK, (ended,))
    for number in range(4, 40):
        again = logged(Record(f"t{number}"), again, Way.AGAIN, number, again=True)
    assert [each.number for each in again.earlier] == [30, 31, 32, 33, 34, 35, 36, 37, 38]


def test_record_from_before_releases_had_numbers_gets_one() -> None:
    old = Record("t1", "alice", "Success", actions=(action(1),))
    found = logged(old, old, Way.RELEASE, 5, again=False)
    assert (found.number, found.way) == (5, Way.RELEASE)
    assert logged(old, old, Way.AGAIN, 6, again=True).earlier == (msgspec.structs.replace(old, actions=()),)


def generation(number: int, version: str = V1, **status: object) -> Release:
    found = release(version)
    spec = msgspec.structs.replace(found.spec, workload_generation=number)
    return msgspec.structs.replace(found, spec=spec, status=msgspec.structs.replace(found.status, **status))


BACK = {"status": "Failed", "conditions": (Condition("RolledBack", "True", "PodNotUp"),), "rollback_to": V1}


@pytest.mark.parametrize(
    ("present", "others", "again", "expected"),
    [
        (generation(1), [], False, Way.RELEASE),
        (generation(3), [generation(2, V2, **BACK)], True, Way.ROLLBACK),
        # somebody released a third version after the rollback, then this one by hand
        (generation(5), [generation(2, V2, **BACK), generation(4, "c" * 32)], True, Way.AGAIN),
        (generation(3), [generation(2, V2, status="Suspend")], True, Way.AGAIN),
        (generation(3), [generation(2, V2, status="Suspend"), generation(4, "c" * 32)], False, Way.RELEASE),
        (generation(3, actions=(action(5, "Bypass"),)), [generation(2, V2, status="Suspend")], False, Way.REPAIR),
        (generation(3, actions=(action(-5, "Bypass"),)), [], True, Way.AGAIN),
    ],
)
def test_way_of_a_release(present: Release, others: list[Release], again: bool, expected: Way) -> None:
    assert way(present, present.status, others, again=again) == expected


def test_releases_that_had_not_ended_are_superseded_by_a_newer_one() -> None:
    running, ended = generation(2, V2, status="Running"), generation(3, V2, status="Success")
    assert superseded(generation(4), [running, ended, generation(5, V2, status="Init")]) == [running]


def test_reason_of_a_rolled_back_release_is_that_of_the_rollback_and_the_message_is_bounded() -> None:
    conditions = (
        Condition("Verified", "False", "FailedByHealth", "x"),
        Condition("RolledBack", "True", "PodNotUp", "y" * 5000),
    )
    failed = of("Failed", conditions=conditions).status
    assert record(of("Rollback"), failed, ()).reason == "PodNotUp"
    assert len(record(of("Rollback"), failed, ()).message) == 1024
    succeeded = of("Success", conditions=conditions).status
    assert record(of("Running"), succeeded, ()).reason == "FailedByHealth"


@pytest.mark.parametrize(
    ("state", "condition", "rolled_back"),
    [
        ("Failed", Condition("RolledBack", "True", "PodNotUp"), True),
        ("Rollback", Condition("RolledBack", "False", "Withdrawn"), True),
        ("Failed", Condition("Verified", "False", "OrderRefused"), False),
        ("Suspend", Condition("RolledBack", "False", "NotUndone"), False),
    ],
)
def test_record_says_whether_the_version_was_rolled_back(state: str, condition: Condition, rolled_back: bool) -> None:
    ended = of(state, conditions=(condition,)).status
    assert record(of("Running"), ended, ()).rolled_back == rolled_back


def batch(*checks: tuple[str, str, str]) -> Batch:
    return Batch("shop", "web--x--1", "", "", 0, False, NO_OWNER, (), True, "", "", "", None, checks)


def test_worst_outcome_of_a_check_counts() -> None:
    batches = [
        batch(("server", "Pre", "Passed"), ("errors", "Post", "Failed")),
        batch(("server", "Pre", "Unknown"), ("errors", "Post", "Unknown")),
        batch(("server", "Pre", "Passed"), ("new", "Post", "of another release of AlterShield")),
    ]
    assert check_outcomes(batches) == (
        CheckOutcome("errors", "Post", "Failed"),
        CheckOutcome("new", "Post", "of another release of AlterShield"),
        CheckOutcome("server", "Pre", "Unknown"),
    )


def test_present_version_and_targets_of_rollbacks_are_in_use() -> None:
    previous = SourceRef("ReplicaSet", "web-1", "uid-1", V2, "f" * 32)
    target = SourceRef("ReplicaSet", "web-0", "uid-0")
    found = in_use(workload(V1), [of("Success", previous=previous), of("Rollback", rollback_target=target)])
    assert {V1, V2, "uid-1", "f" * 32, "uid-0"} <= found
    assert "" not in found


def test_record_has_the_steps_that_are_over_also_of_earlier_releases() -> None:
    steps = (PassedStep(1, 1, NOW, NOW + 9, "ann"),)
    found = record(of("Running"), of("Success", rollout=RolloutStatus(phase="Done", passed_steps=steps)).status, ())
    assert found.steps == steps
    again = logged(Record(), found, Way.AGAIN, 2, again=True)
    assert again.earlier[0].steps == steps
