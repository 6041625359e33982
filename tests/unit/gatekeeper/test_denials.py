"""Design rules 2 and 5: which releases are denied, with which words, and what never is."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from gatekeeper.texts import PAGE

from .reviews import (
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
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

SUSPENDED = "1683791175"  # 2023-05-11 07:46:15 UTC
OLD = version_of(deployment())
BIDIRECTIONAL = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def failed(*messages: str) -> StaticListers:
    """The caches after pods of the old version failed verification."""
    pods = [{"pod": f"sleep-5c698f4449-{n}", "message": m, "verdict": "unpass"} for n, m in enumerate(messages)]
    return StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=pods))


def suspended_release(**own: str) -> tuple[Object, Object]:
    """A suspended workload with a changed template, as the mutating webhook leaves it, and what it was."""
    return released("busybox:2", suspend=SUSPENDED, **own), released(suspend=SUSPENDED)


def test_a_suspended_workload_is_not_released_and_kubectl_shows_the_walkthroughs_text() -> None:
    response = validate(*suspended_release(), failed("find error"))
    assert response["allowed"] is False
    # kubectl: `Error from server (REASON): admission webhook "vdeployment.kb.io" denied the request: MESSAGE`
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": f"{kind()} sleep is suspended",
        "message": f"{kind()} sleep is suspended",
    }


def test_the_warnings_say_which_version_which_pods_since_when_and_how_to_repair() -> None:
    assert validate(*suspended_release(), failed("find error", ""))["warnings"] == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD} failed verification",
        "pod sleep-5c698f4449-0 failed: find error",
        "pod sleep-5c698f4449-1 failed: unpass",
        "to repair, run this command, which lets one release pass, then release: "
        f"kubectl label --overwrite {kind()} -n default sleep altershield.defense.antgroup.com/ignored-suspend=true",
        "if only the pod was bad, delete it, and its successor is verified: "
        "kubectl delete pod -n default sleep-5c698f4449-0",
        f"if the verdict is wrong, it can be corrected; this page says who can and how: {PAGE}",
    ]


def test_a_command_that_does_not_fit_into_a_warning_is_left_out_as_a_whole() -> None:
    name = "s" * 253
    warnings = ask(VALIDATE, review(*suspended_release(), name=name), failed("find error"))["warnings"]
    assert f"to repair, run this command, which lets one release pass, then release (see {PAGE})" in warnings


def test_many_failed_pods_are_counted() -> None:
    warnings = validate(*suspended_release(), failed(*["x"] * 12))["warnings"]
    assert sum("failed: x" in warning for warning in warnings) == 5
    assert "and 7 more pods failed" in warnings


@given(st.lists(st.text(max_size=2000), max_size=8), st.text(max_size=40), st.text(max_size=253), st.text(max_size=63))
def test_warnings_fit_into_header_lines_whatever_is_in_the_cluster(
    messages: list[str], since: str, name: str, namespace: str
) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = since
    try:
        body = review(new, old, name=name, namespace=namespace)
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # half surrogates are no JSON
    view = failed(*messages)
    view.release = lambda *_: next(iter(view.releases.values()))  # type: ignore[method-assign]
    warnings = ask(VALIDATE, body, view)["warnings"]
    assert all(0 < len(warning.encode()) <= 256 for warning in warnings)
    assert sum(len(warning) for warning in warnings) < 4096
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in "".join(warnings))
    assert not any(unicodedata.bidirectional(c) in BIDIRECTIONAL for c in "".join(warnings))


def test_without_its_record_the_denial_stands() -> None:
    response = validate(*suspended_release(), StaticListers())
    assert response["status"]["message"] == f"{kind()} sleep is suspended"
    assert any("ignored-suspend" in warning for warning in response["warnings"])


def test_a_release_while_the_repair_is_under_way_is_told_apart_from_the_failure() -> None:
    listers = StaticListers(releases=release(OLD, status="Running"))
    response = validate(*suspended_release(), listers)
    assert response["allowed"] is False
    (name,) = listers.releases
    assert response["warnings"] == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD}, which repairs the failure, is not verified yet (Running)",
        "the suspension ends when that version is a Success; to follow it, run: "
        f"kubectl get changeworkload -n default {name.removeprefix('default/')}",
        f"this page explains suspensions: {PAGE}",
    ]


def test_bidirectional_control_characters_are_removed() -> None:
    warnings = validate(*suspended_release(), failed("find \u202eerror\u2066"))["warnings"]
    assert warnings[1] == "pod sleep-5c698f4449-0 failed: find error"


@pytest.mark.parametrize("suspend", ["", "soon", "-1", "9" * 400])
def test_a_suspension_with_a_strange_time_still_suspends(suspend: str) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = suspend
    assert validate(new, old)["status"]["code"] == 403


def test_taking_the_label_off_in_the_same_request_does_not_help() -> None:
    _, old = suspended_release()
    assert validate(released("busybox:2"), old)["allowed"] is False


def test_a_repair_passes() -> None:
    new, old = suspended_release(ignored_suspend="true")
    response = validate(new, old, failed("find error"))
    assert response["allowed"] is True
    assert response["auditAnnotations"]["bypass"] == "ignored-suspend"


def test_a_repair_right_after_another_one_is_denied_and_told_to_wait() -> None:
    """What is stored is the first one, which nobody has taken up yet; its label is still there."""
    first = released("busybox:2", suspend=SUSPENDED, ignored_suspend="true")
    del first["metadata"]["labels"][labels.DEFENSE_STATUS]
    response = validate(released("busybox:3", suspend=SUSPENDED, ignored_suspend="true"), first, failed("find error"))
    assert response["status"]["message"] == response["status"]["reason"] == f"{kind()} sleep is suspended"
    assert "is not recorded yet" in response["warnings"][0]
    assert version_of(deployment("busybox:2")) in response["warnings"][0]
    assert "try again in a few seconds" in response["warnings"][0]


@pytest.mark.parametrize("value", ["false", "", "True", "1"])
def test_only_true_repairs(value: str) -> None:
    assert validate(*suspended_release(ignored_suspend=value))["allowed"] is False


def test_a_label_that_was_on_before_but_is_not_sent_does_not_repair() -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
    assert validate(new, old)["allowed"] is False


def test_the_reconciler_passes() -> None:
    assert validate(*suspended_release(), failed("x"), user=RECONCILER)["allowed"] is True


def test_what_is_suspended_stays_so_when_blocking_is_switched_off() -> None:
    assert validate(*suspended_release(), StaticListers(blocking=False))["allowed"] is False
    assert validate(*suspended_release(ignored_suspend="true"), StaticListers(blocking=False))["allowed"] is True


def test_a_template_changed_after_our_stamp_is_judged_by_what_it_is() -> None:
    """The version label may be older than what another webhook made of the template."""
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
def test_what_is_no_release_is_never_denied(webhook: str, change: Any) -> None:
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
def test_deletions_and_subresources_pass_untouched(webhook: str, request_: Object) -> None:
    body = review(*suspended_release(), **request_)
    assert ask(webhook, body, failed("x")) == {"uid": body["request"]["uid"], "allowed": True}


@pytest.mark.parametrize("webhook", [MUTATE, VALIDATE])
def test_a_dry_run_is_judged_like_the_real_thing(webhook: str) -> None:
    new, old = suspended_release()
    assert ask(webhook, review(new, old, dryRun=True)) == ask(webhook, review(new, old))


def test_a_new_workload_is_not_denied() -> None:
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


def test_a_rolled_back_version_coming_back_is_denied_with_its_reason_and_the_way_out() -> None:
    response = validate(released("busybo"), released(), rolled_back(BAD))
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": f"AlterShield: {kind()} sleep: version {BAD} was rolled back at 2026-08-21T07:29:49Z: pod sleep-1 "
        "did not come up within 120 s (ImagePullBackOff); change the template, or release it again with the label "
        f"altershield.defense.antgroup.com/ignored-suspend=true; see {PAGE}",
    }
    assert response["auditAnnotations"]["version"] == BAD


def test_a_rollback_under_way_counts() -> None:
    view = rolled_back(BAD, status="Rollback", conditions=[])
    assert validate(released("busybo"), released(), view)["allowed"] is False


def test_another_version_passes_while_a_record_of_a_rollback_exists() -> None:
    assert validate(released("busybox:2"), released(), rolled_back(BAD))["allowed"] is True


def test_what_is_no_release_passes_while_its_version_is_being_rolled_back() -> None:
    new = released("busybo")
    new["spec"]["replicas"] = 9
    assert validate(new, released("busybo"), rolled_back(BAD, status="Rollback"))["allowed"] is True


@pytest.mark.parametrize("status", ["Running", "Success", "Suspend", "Failed", "Init"])
def test_a_version_that_was_not_rolled_back_passes(status: str) -> None:
    view = StaticListers(releases=release(BAD, status=status))
    assert validate(released("busybo"), released(), view)["allowed"] is True


def test_a_rolled_back_version_passes_for_repairs_for_the_reconciler_and_while_blocking_is_off() -> None:
    view = rolled_back(BAD)
    assert validate(released("busybo", ignored_suspend="true"), released(), view)["allowed"] is True
    assert validate(released("busybo"), released(), view, user=RECONCILER)["allowed"] is True
    view.blocking = False
    assert validate(released("busybo"), released(), view)["allowed"] is True


def test_a_rolled_back_version_passes_for_one_repair_and_no_second() -> None:
    first = released("busybox:2", ignored_suspend="true")
    del first["metadata"]["labels"][labels.DEFENSE_STATUS]
    response = validate(released("busybo", ignored_suspend="true"), first, rolled_back(BAD))
    assert "was rolled back" in response["status"]["message"]
    assert "is not recorded yet" in response["warnings"][0]
    view = rolled_back(BAD)
    view.blocking = False
    assert validate(released("busybo", ignored_suspend="true"), first, view)["allowed"] is True


def test_a_rolled_back_template_is_known_by_what_the_api_server_makes_of_it_now() -> None:
    """An API server with other defaults shows it otherwise than when it got its version."""
    view = rolled_back("f" * 32, source={"version": "f" * 32, "fingerprint": BAD})
    response = validate(released("busybo"), released(), view)
    assert f"version {'f' * 32} was rolled back" in response["status"]["message"]
    assert validate(released("busybox:2"), released(), view)["allowed"] is True


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
def test_a_record_is_the_workloads_if_its_owner_is(changes: dict[str, str] | None, spec: Object, belongs: bool) -> None:
    view = rolled_back(BAD, owner=None if changes is None else owner(**changes), spec=spec)
    assert validate(released("busybo"), released(), view)["allowed"] is not belongs


def test_a_stale_version_label_does_not_hide_a_rolled_back_template() -> None:
    new = deployment("busybo", own={labels.VERSION: OLD}, template_version=OLD)
    assert validate(new, released(), rolled_back(BAD))["allowed"] is False


def test_control_characters_in_a_rollbacks_reason_are_taken_out() -> None:
    condition = {"type": "RolledBack", "status": "True", "reason": "x", "message": "a\nb\x1b[31m" + "c" * 5000}
    message = validate(released("busybo"), released(), rolled_back(BAD, conditions=[condition]))["status"]["message"]
    assert "a b [31mcc" in message
    assert len(message) < 700


# the warnings, case by case


def without_version(obj: Object) -> Object:
    del obj["metadata"]["labels"][labels.VERSION]
    return obj


def test_a_release_without_the_repair_label_is_not_told_to_wait() -> None:
    new, old = suspended_release()
    del old["metadata"]["labels"][labels.DEFENSE_STATUS]
    assert not any("not recorded yet" in warning for warning in validate(new, old)["warnings"])


def test_a_repair_after_a_release_without_a_version_says_so() -> None:
    new, old = suspended_release(ignored_suspend="true")
    del old["metadata"]["labels"][labels.DEFENSE_STATUS]
    warnings = validate(new, without_version(old))["warnings"]
    assert "let version unknown pass" in warnings[0]
    assert "version unknown failed verification" in warnings[1]


def test_a_repair_waits_until_defense_status_says_processed() -> None:
    new, old = suspended_release(ignored_suspend="true")
    old["metadata"]["labels"][labels.DEFENSE_STATUS] = "soon"
    assert validate(new, old)["allowed"] is False


def test_a_created_workload_with_the_repair_label_may_have_a_version_that_was_rolled_back() -> None:
    new = released("busybox:2", ignored_suspend="true")
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp"}
    listers = StaticListers(releases=release(version_of(deployment("busybox:2")), conditions=[condition]))
    assert validate(released("busybox:2"), None, listers)["allowed"] is False
    assert validate(new, None, listers)["allowed"] is True


def test_a_rollback_without_a_reason_is_denied_without_one() -> None:
    condition = {"type": "RolledBack", "status": "True", "reason": ""}
    listers = StaticListers(releases=release(version_of(deployment("busybox:2")), conditions=[condition]))
    message = validate(released("busybox:2"), released(), listers)["status"]["message"]
    assert " was rolled back; change the template" in message


def test_failed_pods_are_named_also_before_the_release_is_suspended() -> None:
    listers = StaticListers(
        releases=release(OLD, status="Running", defenseCheckFailPods=[{"pod": "a", "message": "find error"}])
    )
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert f"version {OLD} failed verification" in warnings[0]
    assert warnings[1] == "pod a failed: find error"


def test_a_suspended_release_without_failed_pods_is_no_repair() -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status="Suspend")))["warnings"]
    assert f"version {OLD} failed verification" in warnings[0]
    assert not any("delete pod" in warning for warning in warnings)


def test_a_pod_without_message_and_verdict_is_named() -> None:
    listers = StaticListers(releases=release(OLD, status="Suspend", defenseCheckFailPods=[{"pod": "a"}]))
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert warnings[1] == "pod a failed: no message"
    assert "kubectl delete pod -n default a" in warnings[3]


def test_five_failed_pods_are_named_and_none_is_counted() -> None:
    warnings = validate(*suspended_release(), failed(*"abcde"))["warnings"]
    assert not any("more pods failed" in warning for warning in warnings)


def test_the_warnings_say_why_a_repair_waits() -> None:
    stalled = {"type": "Stalled", "status": "True", "reason": "Paused", "message": "the workload is paused"}
    listers = StaticListers(releases=release(OLD, status="Running", conditions=[stalled]))
    warnings = validate(*suspended_release(), listers)["warnings"]
    assert "it waits because of this: " in warnings[1]
    assert "the workload is paused" in warnings[1]


@pytest.mark.parametrize("suspend", ["\u0661\u0662\u0663", "9" * 5000], ids=["other digits", "too many digits"])
def test_a_time_of_suspension_that_is_no_unix_time_is_left_out(suspend: str) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = suspend
    assert validate(new, old)["warnings"][0].startswith(f"AlterShield: releases of {kind()} sleep are suspended: ")


def test_the_stored_workload_says_whose_releases_count() -> None:
    new, old = released("busybox:2"), released()
    new["metadata"]["uid"] = "forged"
    ref = {"apiVersion": about().api_version, "kind": about().kind, "name": "sleep", "uid": old["metadata"]["uid"]}
    owner = {"apiVersion": "v1", "kind": "Other", "name": "sleep", "uid": "x", "controller": True}
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp"}
    version = version_of(deployment("busybox:2"))
    known = release(version, spec={"workloadRef": ref}, owner=owner, conditions=[condition])
    assert validate(new, old, StaticListers(releases=known))["allowed"] is False
