"""A release is denied while a gate is closed, and the denial says what, why, until when, and the way out."""

import time
from typing import Any

import pytest

from altershield.api import released_by
from altershield.api.annotations import PROBE, ROLLOUT
from altershield.api.gates.field_guards import FieldChange, GuardAction
from altershield.api.gates.overrides import GateName, ReleaseOverride, ReleaseOverrideSpec, Target
from altershield.api.gates.rules import GateMode, Judged
from altershield.api.pages import GATES
from altershield.gates.field_guards import GUARDS
from altershield.gates.freezes import FREEZES
from altershield.gates.windows import WINDOWS
from gatekeeper.dispatch import decide_with_io
from gatekeeper.errors import ReviewError
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.gates.placed import HOUR, freeze, guard, labelled, rule, window
from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    VALIDATE,
    StaticGates,
    StaticListers,
    StaticOverrides,
    about,
    ask,
    deployment,
    encode,
    kind,
    mutate,
    release,
    released,
    review,
    route,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

OLD, NEW = version_of(deployment()), version_of(deployment("busybox:2"))
RELEASE = released("busybox:2"), released()
FROZEN = StaticGates({FREEZES: [freeze(reason="incident 7")]})


def listers(gates: StaticGates = FROZEN, **fields: Any) -> StaticListers:
    return StaticListers(gates=gates, **fields)


def test_a_denial_names_the_gate_its_reason_and_the_ways_out() -> None:
    answer = validate(*RELEASE, listers())
    text = (
        f"AlterShield: {kind()} sleep may not be released now: ReleaseFreeze altershieldoperator-system/f: no release "
        "may begin: incident 7; since 1970-01-01T00:00:00Z"
    )
    assert answer["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": text,
        "details": {
            "causes": [
                {
                    "reason": "ReleaseFreeze",
                    "message": text.partition("now: ")[2],
                    "field": "altershieldoperator-system/f",
                }
            ]
        },
    }
    assert (
        f"to see what is closed and until when, run: altershield gates -n default {kind()}/sleep" in answer["warnings"]
    )
    assert f"this page explains release gates: {GATES}" in answer["warnings"]


def test_clients_read_when_the_release_may_begin() -> None:
    ends = 10**6  # hours
    gates = StaticGates({FREEZES: [freeze(0, ends)], WINDOWS: [window("Deny", (0, ends - 1))]})
    answer = validate(*RELEASE, listers(gates))
    causes = answer["status"]["details"]["causes"]
    assert [each["reason"] for each in causes] == ["ReleaseFreeze", "ReleaseWindow", "OpensAt"]
    assert causes[-1]["message"] == "2084-01-29T16:00:00Z"
    assert "also closed: ReleaseWindow altershieldoperator-system/w" in answer["status"]["message"]
    assert any("ReleaseWindow altershieldoperator-system/w: no release" in each for each in answer["warnings"])


def test_what_is_no_release_passes() -> None:
    old = released()
    scaled = {**old, "spec": {**old["spec"], "replicas": 9}}
    assert validate(scaled, old, listers())["allowed"]
    assert validate(released(), None, listers())["allowed"], "a creation"
    judged = StaticGates({FREEZES: [freeze(judges=(Judged.CREATE,))]})
    assert not validate(released(), None, listers(judged))["allowed"]


def test_a_restart_is_judged_only_if_the_gate_says_so() -> None:
    old, new = released(), released()
    template = new["spec"]["template"]
    template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-11-28T00:00:00Z"}
    assert validate(new, old, listers())["allowed"]
    judged = StaticGates({FREEZES: [freeze(judges=(Judged.RESTART,))]})
    assert not validate(new, old, listers(judged))["allowed"]
    template["metadata"]["annotations"]["other"] = "1"
    assert validate(new, old, listers(judged))["allowed"], "this is an update"
    assert not validate(new, old, listers())["allowed"]


def test_the_reconciler_is_not_judged() -> None:
    back = StaticListers(
        gates=FROZEN,
        releases=release(OLD, status="Rollback", rollbackTarget={"fingerprint": NEW}),
    )
    assert validate(*RELEASE, back, user=RECONCILER)["allowed"]


def test_the_label_ignored_suspend_opens_no_gate() -> None:
    new, old = released("busybox:2", ignored_suspend="true"), released(ignored_suspend="true")
    assert not validate(new, old, listers())["allowed"]


def test_going_back_is_always_possible() -> None:
    present = release(OLD, status="Running", previous={"fingerprint": NEW})
    assert validate(*RELEASE, listers(releases=present))["allowed"]
    other = release(OLD, status="Running", previous={"fingerprint": "0" * 32})
    assert not validate(*RELEASE, listers(releases=other))["allowed"]


@pytest.mark.parametrize(
    "status",
    [
        {"status": "Suspend"},
        {"status": "Failed"},
        {"status": "Success", "previous": {"fingerprint": OLD}},
    ],
    ids=["suspended", "failed", "gone back from"],
)
def test_a_version_that_failed_or_that_was_gone_back_from_is_judged(status: dict[str, Any]) -> None:
    known = release(OLD, status="Success", previous={"fingerprint": NEW}) | release(NEW, **status)
    assert not validate(*RELEASE, listers(releases=known))["allowed"]
    known |= release(NEW, status="Success")
    assert validate(*RELEASE, listers(releases=known))["allowed"]


def test_a_version_that_was_gone_back_from_is_judged_also_when_its_changeworkload_is_gone() -> None:
    present = release(OLD, status="Success", previous={"fingerprint": NEW, "left": True})
    assert not validate(*RELEASE, listers(releases=present))["allowed"]


def test_going_back_is_possible_after_a_version_that_was_gone_back_from_is_released_again() -> None:
    """The version before came after the present one too, and the present one was left then."""
    known = release(OLD, status="Running", previous={"fingerprint": NEW})
    known |= release(NEW, status="Success", previous={"fingerprint": OLD, "left": True})
    assert validate(*RELEASE, listers(releases=known))["allowed"]


def test_the_base_of_a_release_in_steps_is_always_possible() -> None:
    new, old = RELEASE
    for base, allowed in ((NEW, True), ("0" * 32, False)):
        hold = f'{{"version":"{OLD}","base":"{base}","rollout":{{"pods":[1]}},"causes":[{{"by":"steps","pods":1}}]}}'
        held = {**old, "metadata": {**old["metadata"], "annotations": {ROLLOUT: hold}}}
        denied = validate(new, held, listers())
        assert allowed is ("may not be released now" not in str(denied))


def test_a_label_in_the_same_request_is_no_way_around_a_gate() -> None:
    gates = StaticGates({FREEZES: [freeze(selector=labelled(team="shop"))]})
    old = released()
    old["metadata"]["labels"]["team"] = "shop"
    assert not validate(released("busybox:2"), old, listers(gates))["allowed"]
    assert validate(*RELEASE, listers(gates))["allowed"]


def test_a_label_in_a_request_before_the_release_is_no_way_around_a_gate() -> None:
    """The labels of the last release are in its annotation."""
    gates = StaticGates({FREEZES: [freeze(0, 1, selector=labelled(team="shop"))]})
    first = released()
    first["metadata"]["labels"]["team"] = "shop"
    stored, _ = mutate(first, None, listers(gates))
    value = stored["metadata"]["annotations"][released_by.ANNOTATION]
    assert "team" in value
    relabelled = {**released(), "metadata": {**released()["metadata"], "annotations": {released_by.ANNOTATION: value}}}
    gates.placed[FREEZES] = [freeze(selector=labelled(team="shop"))]
    new = released("busybox:2")
    assert not validate(new, relabelled, listers(gates))["allowed"]
    assert validate(new, released(), listers(gates))["allowed"]


def test_mode_warn_admits_with_a_warning() -> None:
    gates = StaticGates({FREEZES: [freeze(mode=GateMode.WARN)]})
    answer = validate(*RELEASE, listers(gates))
    assert answer["allowed"]
    assert answer["warnings"][0].startswith("AlterShield: with mode enforce: ReleaseFreeze ")


def test_until_the_caches_are_filled_the_failure_policy_decides() -> None:
    with pytest.raises(ReviewError, match="not filled yet") as caught:
        validate(*RELEASE, listers(StaticGates(filled=False)))
    assert caught.value.code == 503


IMAGES = "spec.containers[*].image"
GUARDED = StaticGates({GUARDS: [guard(rule(IMAGES, name="images", message="ask ann"), namespace="default")]})


def test_a_denial_by_a_guard_names_the_rule_and_the_field() -> None:
    answer = validate(*RELEASE, listers(GUARDED))
    field = "spec.containers[sleep].image changes from busybox to busybox:2: ask ann"
    assert answer["status"]["message"] == (
        f"AlterShield: {kind()} sleep may not be released with this change: FieldGuard default/g, rule images: {field}"
    )
    (cause,) = answer["status"]["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldGuard", "default/g")
    assert "to ask whether another manifest may be released, run: altershield gates -f FILE" in answer["warnings"]
    assert not any("until when" in each for each in answer["warnings"])
    present = release(OLD, status="Running", previous={"fingerprint": NEW})
    assert validate(*RELEASE, listers(GUARDED, releases=present))["allowed"], "going back"


def test_versions_in_the_labels_of_a_template_are_no_change_for_a_guard() -> None:
    gates = StaticGates({GUARDS: [guard(rule("metadata.labels"))]})
    assert validate(*RELEASE, listers(gates))["allowed"]
    new = released("busybox:2")
    new["spec"]["template"]["metadata"]["labels"]["team"] = "shop"
    text = validate(new, RELEASE[1], listers(gates))["status"]["message"]
    assert text.endswith("FieldGuard altershieldoperator-system/g, rule r: metadata.labels changes")


def test_the_annotation_of_a_question_is_no_change_for_a_guard() -> None:
    gates = StaticGates({GUARDS: [guard(rule("metadata.annotations"), rule("metadata.annotations[*]", name="each"))]})
    new = released()
    new["spec"]["template"]["metadata"]["annotations"] = {PROBE: "2026-11-28T00:00:00Z"}
    assert validate(new, released(), listers(gates))["allowed"]
    new["spec"]["template"]["metadata"]["annotations"]["other"] = "x"
    assert not validate(new, released(), listers(gates))["allowed"]


def test_a_rule_with_action_warn_admits_with_a_warning() -> None:
    gates = StaticGates({GUARDS: [guard(rule(IMAGES, action=GuardAction.WARN))]})
    answer = validate(*RELEASE, listers(gates))
    assert answer["allowed"]
    assert answer["warnings"][0].startswith("AlterShield: FieldGuard altershieldoperator-system/g, rule r: spec.")


@pytest.mark.parametrize(
    ("user", "manager", "denied"),
    [
        ("argocd", "argocd-controller", True),
        ("job-17", "argocd-controller", True),
        ("argocd", "", False),
        ("ann", "kubectl-set", True),
        ("ann", "kubectl-edit", False),
        ("bob", "kubectl-set", False),
        ("eve", "", True),
        ("zoe", "", False),
        ("eve", "kubectl-set", False),
        ("argocd-controller", "", False),
        ("", "eve", False),
    ],
)
def test_a_revert_is_by_the_same_field_manager_or_user(user: str, manager: str, denied: bool) -> None:
    def by(user: str, manager: str) -> dict[str, Any]:
        return {
            "user": user,
            "manager": manager,
            "time": "2026-11-28T10:00:00Z",
            "paths": [IMAGES],
            "values": {"spec.containers[sleep].image": '"busybox:2"'},
        }

    written = [by("argocd", "argocd-controller"), by("ann", "kubectl-set"), by("eve", "")]
    gates = StaticGates({GUARDS: [guard(rule(IMAGES, FieldChange.REVERTED))]})
    known = listers(gates, releases=release(OLD, spec={"written": written}))
    options = {"options": {"kind": "PatchOptions", "fieldManager": manager}} if manager else {}
    answer = ask(VALIDATE, review(*RELEASE, user=user, **options), known)
    assert answer["allowed"] is not denied
    if denied:
        assert "is busybox now, was busybox:2 in the last release by" in answer["status"]["message"]


@pytest.mark.parametrize(("state", "denied"), [("Success", True), ("Running", False), ("TimeOutPreThreshold", False)])
def test_putting_own_old_values_back_over_a_version_that_succeeded_is_no_going_back(state: str, denied: bool) -> None:
    last = {
        "user": "argocd",
        "manager": "argocd-controller",
        "paths": [IMAGES],
        "values": {"spec.containers[sleep].image": '"busybox:2"'},
    }
    present = release(OLD, spec={"written": [last]}, status=state, previous={"fingerprint": NEW})
    gates = StaticGates({GUARDS: [guard(rule(IMAGES, FieldChange.REVERTED, FieldChange.CHANGED))], FREEZES: [freeze()]})
    sent = review(*RELEASE, user="argocd", options={"fieldManager": "argocd-controller"})
    answer = ask(VALIDATE, sent, listers(gates, releases=present))
    assert answer["allowed"] is not denied
    if denied:
        assert [each["reason"] for each in answer["status"]["details"]["causes"]] == ["FieldGuard"]
        assert "to go back to the version before on purpose, run: altershield rollback" in str(answer["warnings"])
    undo = review(*RELEASE, user="argocd", options={"fieldManager": "kubectl-rollout"})
    assert ask(VALIDATE, undo, listers(gates, releases=present))["allowed"]


def test_templates_that_are_nested_too_deeply_are_not_judged() -> None:
    new, old = released("busybox:2"), released()
    nested: Any = 1
    for _ in range(300):
        nested = {"a": nested}
    old["spec"]["template"]["spec"]["deep"] = nested
    with pytest.raises(ReviewError, match="cannot be read"):
        validate(new, old, listers(GUARDED))


def test_a_window_in_the_past_is_open() -> None:
    gates = StaticGates({WINDOWS: [window("Deny", (0, HOUR))]})
    assert validate(*RELEASE, listers(gates))["allowed"]


def overridden(problem: str = "") -> StaticListers:
    made = ReleaseOverride(
        ObjectMeta("fix", "altershieldoperator-system", creation_timestamp=rfc3339(time.time())),
        ReleaseOverrideSpec(
            reason="an emergency", target=Target(about().kind, "sleep", "default"), gates=(GateName.FREEZE,)
        ),
    )
    return listers(overrides=StaticOverrides([made], problem=problem))


async def answer(found: StaticListers, **request: Any) -> Any:
    served = route(VALIDATE)
    return await decide_with_io(served, served.decode(encode(review(*RELEASE, **request))), found)


async def test_an_override_lets_the_release_pass_after_its_use_is_recorded() -> None:
    found = overridden()
    passed = await answer(found)
    assert passed.denial is None
    assert passed.audit["override"] == "altershieldoperator-system/fix"
    assert "ReleaseOverride altershieldoperator-system/fix lets this release pass" in passed.warnings[0]
    assert found.overrides.recorded == ["altershieldoperator-system/fix"]


async def test_a_dry_run_uses_no_override() -> None:
    found = overridden()
    assert (await answer(found, dryRun=True)).denial is None
    assert found.overrides.recorded == []


async def test_a_use_that_cannot_be_recorded_admits_nothing() -> None:
    denial = (await answer(overridden("the API server is away; try again"))).denial
    assert (denial.code, denial.reason) == (429, "TooManyRequests")
    assert "the API server is away; try again" in denial.message
