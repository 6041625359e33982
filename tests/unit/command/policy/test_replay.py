"""What a policy would have decided about releases of the history."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.check_specs import CheckSpec
from altershield.api.policy import AppliedPolicy
from altershield.api.workload_requests import Action
from altershield.releases.history import CheckOutcome, Entry, Evidence, FailedPlace, Record
from command.policy.replay import Replayed, replayed
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.releases.builders import NOW, V1, workload

CHECK: dict[str, Any] = {"name": "errors", "prometheus": {"url": "http://p.svc", "query": "up", "max": "1"}}
OTHER = {**CHECK, "prometheus": {**CHECK["prometheus"], "max": "2"}}
STEPS = {"steps": [{"pods": 1, "soakSeconds": 600}, {"pods": "30%", "soakSeconds": 60, "approval": True}]}


def rules(**spec: Any) -> AppliedPolicy:
    return msgspec.convert({"name": "web", "namespace": "shop", **spec}, AppliedPolicy)


def record(state: str = "Success", reason: str = "Passed", old: dict[str, Any] | None = None, **more: Any) -> Record:
    places = more.pop("places", ())
    kept = Evidence(
        replicas=more.pop("replicas", 10),
        pods=more.pop("pods", 10),
        failed_by=more.pop("failed_by", ""),
        failures=tuple(FailedPlace(*each) for each in places),
        rules=rules(**(old or {})),
    )
    values = {"number": 1, "released": rfc3339(NOW), "since": rfc3339(NOW + 120), "evidence": kept}
    return Record(state=state, reason=reason, **{**values, **more})


def failed(by: str, *places: tuple[int, int], old: dict[str, Any] | None = None, **more: Any) -> Record:
    return record("Suspend", by, old, places=places, **more)


def entry(found: Record) -> Entry:
    template = {"spec": {"containers": [{"name": "web", "image": "registry.example/web:2.3"}]}}
    made = Entry(ObjectMeta(name=f"web--x--{V1}"), V1, template, 1)
    made.__dict__["record"] = found
    return made


def replay(found: Record, kind: str = "Deployment", **spec: Any) -> Replayed:
    (made,) = replayed([entry(found)], workload(kind=kind), rules(**spec))
    return made


def test_release_that_passed_passes_a_policy_that_is_not_stricter() -> None:
    made = replay(record())
    assert (made.would, made.ended, made.version, made.images) == ("Pass", "Success", V1, "web:2.3")
    assert (made.had, made.replicas, made.took_seconds, made.steps, made.step) == (10, 10, 120, 0, 0)
    assert replay(record(old={"checks": [CHECK, OTHER | {"name": "b"}]}), checks=[CHECK]).would == "Pass"
    looser = {"startTimeoutSeconds": 60, "observeSeconds": 30, "settleSeconds": 60}
    tighter = {"startTimeoutSeconds": 90, "observeSeconds": 10, "settleSeconds": 30}
    assert replay(record(old=looser), **tighter).would == "Pass"


@pytest.mark.parametrize(
    ("old", "spec", "why"),
    [
        ({}, {"checks": [CHECK]}, "the check errors was not asked"),
        ({"checks": [OTHER]}, {"checks": [CHECK]}, "the check errors was not asked"),
        ({"checks": [CHECK]}, {}, "the check of the AlterShield server, if one is configured, was not asked"),
        ({}, {"startTimeoutSeconds": 60}, "startTimeoutSeconds was not set"),
        ({"startTimeoutSeconds": 90}, {"startTimeoutSeconds": 60}, "startTimeoutSeconds was 90"),
        ({"startTimeoutSeconds": 90}, {}, "startTimeoutSeconds was 90"),
        ({"observeSeconds": 5}, {"observeSeconds": 10}, "observeSeconds was 5"),
        ({}, {"settleRestarts": 1}, "settleRestarts was 3"),
        ({}, {"rollbackShare": 1}, "rollbackShare was not set"),
    ],
)
def test_release_that_passed_is_unknown_if_the_policy_asks_for_more(
    old: dict[str, Any], spec: dict[str, Any], why: str
) -> None:
    made = replay(record(old=old), **spec)
    assert (made.would, made.why) == ("Unknown", why)


def test_steps_of_a_release_that_passed_have_a_least_time_and_approvals() -> None:
    made = replay(record(), rollout=STEPS)
    assert (made.would, made.steps, made.step, made.least_seconds, made.approvals) == ("Pass", 3, 0, 660, 1)
    assert replay(record(), rollout=STEPS, mode="observe").steps == 0


@pytest.mark.parametrize(
    ("places", "step", "pods"),
    [
        ([(1, 0)], 1, 1),
        ([(2, 0)], 2, 3),
        ([(3, 0), (9, 0)], 2, 3),
        ([(4, 0)], 3, 10),
        ([(1, 500)], 1, 1),
        ([(1, 601)], 2, 3),
        ([(1, 700)], 3, 10),
    ],
)
def test_failure_stops_the_release_in_the_step_of_the_pod_that_failed(
    places: list[tuple[int, int]], step: int, pods: int
) -> None:
    made = replay(failed("FailedByPerson", *places), rollout=STEPS)
    assert (made.would, made.step, made.steps, made.pods, made.had) == ("Suspend", step, 3, pods, 10)


@pytest.mark.parametrize(
    ("spec", "would"),
    [
        ({}, "Suspend"),
        ({"onFailure": "suspend"}, "Suspend"),
        ({"onFailure": "pause"}, "Pause"),
        ({"onFailure": "pause", "rollout": STEPS}, "Suspend"),
        ({"onFailure": "rollback"}, "RollbackOrSuspend"),
        ({"mode": "observe", "onFailure": "rollback"}, "Nothing"),
        ({"mode": "warn"}, "Nothing"),
    ],
)
def test_verdict_of_a_person_leads_to_what_the_policy_says(spec: dict[str, Any], would: str) -> None:
    assert replay(failed("FailedByPerson", (1, 0)), **spec).would == would


def test_rollback_that_was_possible_is_one_again() -> None:
    rolled_back = {"rolled_back": True, "failed_by": "FailedByPerson"}
    made = record("Failed", "VerificationFailed", places=((1, 0),), **rolled_back)
    assert replay(made, onFailure="rollback").would == "Rollback"
    assert replay(made, onFailure="rollback").ended == "RolledBack"
    assert replay(made, onFailure="suspend").would == "Suspend"


def test_pods_that_did_not_come_up_fail_a_policy_that_does_not_wait_longer() -> None:
    overdue = record("Failed", "PodNotUp", {"startTimeoutSeconds": 60}, places=((1, 0),), rolled_back=True)
    assert replay(overdue, startTimeoutSeconds=60).would == "Rollback"
    assert replay(overdue, startTimeoutSeconds=60, onStartFailure="suspend").would == "Suspend"
    assert replay(overdue, startTimeoutSeconds=60, onNothingServes="suspend").would == "RollbackOrSuspend"
    longer = replay(overdue, startTimeoutSeconds=90)
    assert (longer.would, longer.why) == ("Unknown", "startTimeoutSeconds was 60")
    assert replay(overdue, startTimeoutSeconds=60, checks=[CHECK]).why == "the check errors was not asked"
    shorter = replay(overdue, startTimeoutSeconds=30, rollout=STEPS)
    assert (shorter.would, shorter.step) == ("Rollback", 0)
    assert "in which step is unknown: startTimeoutSeconds was 60" in shorter.why


def test_annotation_of_the_workload_replaces_the_start_timeout_of_the_policy() -> None:
    own = msgspec.structs.replace(workload(), start_timeout="90")
    (made,) = replayed([entry(record(old={"startTimeoutSeconds": 90}))], own, rules(startTimeoutSeconds=60))
    assert made.would == "Pass"


def test_check_that_failed_fails_a_policy_that_has_it() -> None:
    checks = (CheckOutcome("errors", "Post", "Failed"), CheckOutcome("other", "Post", "Passed"))
    made = failed("FailedByCheck", (1, 0), old={"checks": [CHECK]}, checks=checks)
    assert replay(made, checks=[CHECK]).would == "Suspend"
    for spec in ({"checks": [OTHER]}, {"checks": [CHECK | {"name": "other"}]}, {}):
        found = replay(made, **spec)
        assert (found.would, found.why) == ("Unknown", "the policy does not have the check errors as it was")
    more = replay(made, checks=[CHECK, OTHER | {"name": "more"}], rollout=STEPS)
    assert (more.would, more.step) == ("Suspend", 0)
    assert "in which step is unknown: the check more was not asked" in more.why


def test_check_of_the_server_is_the_same_if_neither_policy_has_checks() -> None:
    made = failed("FailedByServer", (2, 0))
    assert replay(made, rollout=STEPS).step == 2
    assert replay(made, checks=[CHECK]).would == "Unknown"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (Record(state="Success"), "the history has no details of its end"),
        (msgspec.structs.replace(record(), evidence=Evidence(10, 10)), "the history does not have the policy that app"),
        (record(pods=0), "does not say whether people decided"),
        (record(checks=(CheckOutcome("errors", "Post", "Failed"),)), "the check errors failed, and a person decided"),
        (record(actions=(Action("Approve", "ann", "", rfc3339(NOW + 9), "Done"),)), "a person asked for Approve in"),
        (record(actions=(Action("Hold", "ann", "", rfc3339(NOW)),) * 16), "does not say whether people decided"),
        (record("Failed", "Requested", rolled_back=True), "a person went back from it"),
        (record("Running", ""), "its end (Running) says nothing about its verification"),
        (record("Suspend", "StepDeadlineExceeded"), "its end (Suspend StepDeadlineExceeded) says nothing"),
        (record("Failed", ""), "its end (Failed) says nothing"),
        (record("New", "\x1b[31m"), "says nothing about its verification"),
    ],
)
def test_what_the_history_does_not_tell_is_unknown(found: Record, why: str) -> None:
    made = replay(found, rollout=STEPS)
    assert made.would == "Unknown"
    assert why in made.why
    assert (made.step, made.pods) == (0, 0)


def test_action_in_an_earlier_release_of_the_version_does_not_matter() -> None:
    assert replay(record(actions=(Action("Approve", "ann", "", rfc3339(NOW - 9), "Done"),))).would == "Pass"


def test_step_is_unknown_if_the_failed_pods_are_not_known_or_steps_select_nodes() -> None:
    made = replay(failed("FailedByPerson"), rollout=STEPS)
    assert (made.would, made.step) == ("Suspend", 0)
    assert "the history does not say which pods failed" in made.why
    by_node = {"steps": [{"nodeSelector": {"canary": "true"}}]}
    assert "its steps select nodes" in replay(failed("FailedByPerson", (1, 0)), "DaemonSet", rollout=by_node).why


def test_last_ten_releases_of_all_versions_are_judged_the_newest_first() -> None:
    def numbered(number: int) -> Record:
        return record(number=number)

    entries = [
        entry(msgspec.structs.replace(numbered(4 * each), earlier=tuple(numbered(4 * each - n) for n in (3, 2, 1))))
        for each in (1, 2, 3, 4)
    ]
    assert [each.number for each in replayed(entries, workload(), rules())] == list(range(16, 6, -1))


@pytest.mark.parametrize("state", WorkloadState)
@pytest.mark.parametrize("reason", ["", "PodNotUp", "FailedByHealth", "FailedByCheck", "VerificationFailed"])
def test_every_end_has_an_answer(state: str, reason: str) -> None:
    assert replay(record(state, reason), rollout=STEPS, checks=[CHECK]).would in ("Unknown", "Suspend")


def test_check_is_compared_as_the_api_server_stores_it() -> None:
    assert msgspec.json.decode(msgspec.json.encode(rules(checks=[CHECK])), type=AppliedPolicy) == rules(checks=[CHECK])
    assert msgspec.convert(CHECK, CheckSpec) in rules(checks=[CHECK]).checks
