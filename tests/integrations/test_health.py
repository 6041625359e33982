"""The health checks for Argo CD (Lua) and Flux (CEL), run on objects in every state."""

import re
from typing import Any

import pytest

from altershield.api.change_pod import PodState
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.labels import SUSPEND
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES, GROUP, OPS_CONFIG_INFOS
from tests.integrations.checks import EXPRESSIONS, PREFIX, SCRIPTS, flux, health
from tests.integrations.objects import Json, condition, of_kind

KINDS = [each.kind for each in (CHANGE_WORKLOADS, CHANGE_PODS, OPS_CONFIG_INFOS, DEFENSE_POLICIES)]


def workload(state: str, *conditions: Json, **more: Any) -> Json:
    return of_kind(CHANGE_WORKLOADS.kind, *conditions, status=state, **more)


def test_checks_exist_for_deployments_and_for_each_of_our_kinds() -> None:
    assert set(SCRIPTS) == {f"{PREFIX}apps_Deployment", *(f"{PREFIX}{GROUP}_{kind}" for kind in KINDS)}


HEALTH_BY_STATE = {
    WorkloadState.INIT: "Progressing",
    WorkloadState.RUNNING: "Progressing",
    WorkloadState.TIME_OUT_PRE_THRESHOLD: "Progressing",
    WorkloadState.SUCCESS: "Healthy",
    WorkloadState.SUSPEND: "Degraded",
    WorkloadState.FAILED: "Degraded",
    WorkloadState.ROLLBACK: "Progressing",
}


@pytest.mark.parametrize("state", WorkloadState)
def test_health_of_a_release_follows_its_state(state: WorkloadState) -> None:
    assert health(workload(state, condition("Verified", "Unknown", message="why")))[0] == HEALTH_BY_STATE[state]


@pytest.mark.parametrize(
    ("state", "given", "expected"),
    [
        ("Suspend", condition("Verified", "False", message="2 pods failed"), ("Degraded", "2 pods failed")),
        ("Failed", condition("RolledBack", "True", message="back to v1"), ("Degraded", "back to v1")),
        ("Running", condition("NoReplicas", "True", "NoPods", "no pods"), ("Suspended", "no pods")),
        ("Running", condition("Stalled", "True", "Unschedulable", "no node"), ("Progressing", "no node")),
        ("Running", condition("Stalled", "True", "CheckHeld", "decide"), ("Suspended", "decide")),
        ("Running", condition("Stalled", "True", "Paused", "paused"), ("Suspended", "paused")),
        ("Running", condition("Stalled", "False", "GoesOn", "no more"), ("Progressing", "")),
        ("Success", condition("Settled", "False", "PodsDown", "1 pod down"), ("Progressing", "1 pod down")),
        ("Success", condition("Settled", "False", "Observing", "watching"), ("Healthy", "")),
    ],
)
def test_health_of_a_release_names_the_reason(state: str, given: Json, expected: tuple[str, str]) -> None:
    assert health(workload(state, given)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_object_without_a_status_or_with_an_older_one_is_progressing(kind: str) -> None:
    new = of_kind(kind)
    del new["status"]
    assert health(new)[0] == "Progressing"
    accepted = (condition("Accepted", "True"), condition("Verified", "True"))
    assert health(of_kind(kind, *accepted, status="Success", generation=1))[0] == "Progressing"


@pytest.mark.parametrize(
    ("state", "given", "expected"),
    [
        (PodState.EXECUTE_DONE, condition("Verified", "True", "PodsPassed"), "Healthy"),
        (PodState.EXECUTE_DONE, condition("Verified", "False", "FailedByCheck"), "Degraded"),
        (PodState.POST_WAIT, condition("Verified", "False", "FailedByPerson"), "Degraded"),
        (PodState.POST_WAIT, condition("Verified", "Unknown", "InProgress"), "Progressing"),
        (PodState.POST_TIMEOUT, condition("Verified", "Unknown", "Held"), "Suspended"),
    ],
)
def test_health_of_a_batch_follows_its_verdict(state: PodState, given: Json, expected: str) -> None:
    assert health(of_kind(CHANGE_PODS.kind, given, status=state))[0] == expected


@pytest.mark.parametrize("kind", [OPS_CONFIG_INFOS.kind, DEFENSE_POLICIES.kind])
def test_refused_setting_or_policy_is_degraded(kind: str) -> None:
    assert health(of_kind(kind, condition("Accepted", "True")))[0] == "Healthy"
    assert health(of_kind(kind, condition("Accepted", "False", message="why"))) == ("Degraded", "why")
    assert health(of_kind(kind))[0] == "Progressing"


def test_policy_that_never_applies_is_suspended() -> None:
    accepted, shadowed = condition("Accepted", "True"), condition("Shadowed", "True", message="other is first")
    assert health(of_kind(DEFENSE_POLICIES.kind, accepted, shadowed)) == ("Suspended", "other is first")
    assert health(of_kind(DEFENSE_POLICIES.kind, accepted, condition("Shadowed", "False")))[0] == "Healthy"


def deployment(spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    rolled_out = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"generation": 2, **metadata},
        "spec": {"replicas": 3, **(spec or {})},
        "status": rolled_out if status is None else {**rolled_out, **status},
    }


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (deployment(), "Healthy"),
        (deployment(labels={SUSPEND: "true"}), "Degraded"),
        (deployment(spec={"paused": True}), "Suspended"),
        (deployment(status={"observedGeneration": 1}), "Progressing"),
        (deployment(status={"updatedReplicas": 1}), "Progressing"),
        (deployment(status={"replicas": 4}), "Progressing"),
        (deployment(status={"availableReplicas": 2}), "Progressing"),
        (
            deployment(status={"conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")]}),
            "Degraded",
        ),
    ],
)
def test_health_of_a_deployment_is_that_of_argo_cd_and_of_its_suspension(obj: Json, expected: str) -> None:
    assert health(obj)[0] == expected


def test_flux_has_expressions_for_each_of_our_kinds() -> None:
    assert set(EXPRESSIONS) == set(KINDS)
    assert {each["apiVersion"] for each in EXPRESSIONS.values()} == {f"{GROUP}/v1alpha1"}
    assert all(set(each) == {"apiVersion", "kind", "inProgress", "failed", "current"} for each in EXPRESSIONS.values())


@pytest.mark.parametrize("state", WorkloadState)
def test_flux_and_argo_cd_agree_about_a_release(state: WorkloadState) -> None:
    words = {"Healthy": "Current", "Degraded": "Failed", "Progressing": "InProgress"}
    obj = workload(state, condition("Verified", "Unknown"))
    assert flux(obj) == words[health(obj)[0]]


@pytest.mark.parametrize("kind", [OPS_CONFIG_INFOS.kind, DEFENSE_POLICIES.kind])
def test_flux_fails_on_a_refused_setting_or_policy(kind: str) -> None:
    assert flux(of_kind(kind, condition("Accepted", "True"))) == "Current"
    assert flux(of_kind(kind, condition("Accepted", "False"))) == "Failed"
    assert flux(of_kind(kind)) == "InProgress"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (condition("Verified", "True"), "Current"),
        (condition("Verified", "False"), "Failed"),
        (condition("Verified", "Unknown"), "InProgress"),
    ],
)
def test_flux_reads_the_verdict_of_a_batch(given: Json, expected: str) -> None:
    assert flux(of_kind(CHANGE_PODS.kind, given, status=PodState.EXECUTE_DONE)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_flux_waits_for_an_object_without_a_status_or_with_an_older_one(kind: str) -> None:
    new = of_kind(kind)
    del new["status"]
    assert flux(new) == "InProgress"
    assert flux(of_kind(kind, condition("Accepted", "False"), status="Failed", generation=1)) == "InProgress"


def test_conditions_and_states_in_the_checks_exist() -> None:
    texts = [text for name, text in SCRIPTS.items() if GROUP in name] + [str(each) for each in EXPRESSIONS.values()]
    types = {
        name
        for text in texts
        for name in re.findall(r"(?:conditions\.|\.type == [\"']|is_true\(\"|message_of\(\")([A-Z]\w+)", text)
    }
    assert types
    assert types <= set(ConditionType)
    states = {name for text in texts for name in re.findall(r"status\.status == [\"'](\w+)", text)}
    assert states <= {*WorkloadState, *PodState}
