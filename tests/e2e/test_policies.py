"""DefensePolicies, from `kubectl apply` to what a release does under them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.annotations import START_TIMEOUT
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.policy import API_VERSION
from tests.e2e.sleep import sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

WRONG_QUERY = {
    "name": "errors",
    "prometheus": {"url": "http://prometheus.monitoring.svc", "query": "{{no}}", "max": "1"},
}


def policy(kubectl: Kubectl, name: str, **spec: Any) -> None:
    made = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": name}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))


def condition(obj: Json, type_: str) -> Json:
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == type_]
    return dict(found[0]) if found else {}


def until_accepted(kubectl: Kubectl, name: str, status: str = "True") -> Json:
    """The policy, after the reconciler has written its status for the present spec."""

    def accepted() -> Json | None:
        found = kubectl.json("defensepolicy", name)
        of_spec = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
        return found if of_spec and condition(found, "Accepted").get("status") == status else None

    return dict(eventually(accepted, f"the policy {name} to have Accepted={status}") or {})


def events(kubectl: Kubectl, reason: str) -> list[str]:
    return [each["message"] for each in kubectl.json("events")["items"] if each["reason"] == reason]


def until_event(kubectl: Kubectl, reason: str) -> str:
    return str(eventually(lambda: events(kubectl, reason), f"the Event {reason}")[0])


def release(kubectl: Kubectl, image: str = "busybox") -> None:
    """Apply the Deployment sleep, with another image if it is named."""
    kubectl("apply", "-f", "-", stdin=sleep(image=image))


def newest(kubectl: Kubectl) -> Json:
    """The newest ChangeWorkload; empty if there is none."""
    found = kubectl.json("changeworkloads")["items"]
    return max(found, key=lambda each: each["spec"].get("workloadGeneration", 0), default={})


def until_release(kubectl: Kubectl, state: str) -> Json:
    def met() -> Json | None:
        found = newest(kubectl)
        return found if found.get("status", {}).get("status") == state else None

    return dict(eventually(met, f"the release to be a {state}") or {})


@pytest.fixture
def system(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in the system namespace. Policies are removed at the end."""
    own = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    yield own
    own("delete", "defensepolicies", "--all")


# acceptance


def test_wrong_edit_of_a_policy_is_reported_and_leaves_the_last_accepted_spec_in_force(kubectl: Kubectl) -> None:
    policy(kubectl, "shop", observeSeconds=2, selector={"matchLabels": {"a": "1"}})
    found = until_accepted(kubectl, "shop")
    assert found["status"]["accepted"]["observeSeconds"] == 2
    policy(kubectl, "shop", checks=[WRONG_QUERY])
    found = until_accepted(kubectl, "shop", "False")
    assert condition(found, "Accepted")["reason"] == "UnknownPlaceholder"
    assert "{{no}}" in condition(found, "Accepted")["message"]
    assert found["status"]["accepted"]["observeSeconds"] == 2
    assert found["status"]["acceptedGeneration"] == 1
    assert "stays in force" in until_event(kubectl, "PolicyRejected")
    release(kubectl)
    found = until_release(kubectl, "Success")
    assert found["spec"].get("policy", {}) == {}  # the accepted spec selects other workloads
    policy(kubectl, "shop", observeSeconds=1, selector={"matchLabels": {"b": "2"}})
    found = until_accepted(kubectl, "shop")
    assert found["status"]["accepted"]["selector"] == {"matchLabels": {"b": "2"}}


def test_policy_that_can_never_apply_is_shadowed(kubectl: Kubectl) -> None:
    policy(kubectl, "all", priority=1)
    policy(kubectl, "web", selector={"matchLabels": {"app": "web"}})
    found = until_accepted(kubectl, "web")
    eventually(
        lambda: condition(kubectl.json("defensepolicy", "web"), "Shadowed").get("status") == "True",
        "the policy web to be shadowed",
    )
    assert condition(until_accepted(kubectl, "all"), "Shadowed")["status"] == "False"
    kubectl("delete", "defensepolicy", "all")
    eventually(
        lambda: condition(kubectl.json("defensepolicy", "web"), "Shadowed").get("status") == "False",
        "the policy web to be selectable",
    )
    assert found["metadata"]["generation"] == 1


# selection


def test_release_has_a_copy_of_the_policy_that_applies_when_it_begins(kubectl: Kubectl, system: Kubectl) -> None:
    kubectl.run("delete", "defensepolicies", "--all")
    policy(system, "default", observeSeconds=1, mode="observe", selector={"matchLabels": {"app": "sleep"}})
    until_accepted(system, "default")
    release(kubectl)
    first = until_release(kubectl, "Success")
    assert first["spec"]["policy"] == {
        "namespace": SYSTEM_NAMESPACE, "name": "default", "generation": 1, "observeSeconds": 1, "mode": "observe",
    }  # fmt: skip
    policy(kubectl, "own", batch="50%")
    until_accepted(kubectl, "own")
    assert newest(kubectl)["spec"]["policy"]["name"] == "default"  # the edit changes later releases only
    release(kubectl, "busybox:1.36")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first["spec"]["reversion"], "the second release")
    second = newest(kubectl)["spec"]["policy"]
    assert (second["namespace"], second["name"], second["batch"]) == (kubectl.namespace, "own", "50%")


def test_annotation_sets_the_start_timeout_and_an_invalid_one_is_ignored_with_an_event(kubectl: Kubectl) -> None:
    release(kubectl)
    first = until_release(kubectl, "Success")
    kubectl("annotate", "deployment", "sleep", f"{START_TIMEOUT}=77")
    release(kubectl, "busybox:1.36")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first["spec"]["reversion"], "the second release")
    assert newest(kubectl)["spec"]["policy"] == {"startTimeoutSeconds": 77}
    second = until_release(kubectl, "Success")
    kubectl("annotate", "--overwrite", "deployment", "sleep", f"{START_TIMEOUT}=soon")
    release(kubectl, "busybox:1.37")
    assert "'soon'" in until_event(kubectl, "AnnotationIgnored")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != second["spec"]["reversion"], "the third release")
    assert newest(kubectl)["spec"].get("policy", {}) == {}
