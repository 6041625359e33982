"""Which evictions a PodDisruptionBudget refuses, with which status and text."""

import pytest

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.verbs.disruption_budgets import Charge, charge

NOW, BEFORE = "2026-11-23T03:00:00Z", "2026-11-23T02:00:00Z"


def budget(name: str = "web", *, generation: int = 1, policy: str = "", **status: object) -> Object:
    spec: Object = {"selector": {"matchLabels": {"app": "web"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    counts = {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2}
    return {
        "metadata": {"name": name, "generation": generation},
        "spec": spec,
        "status": {"observedGeneration": 1, **counts, **status},
    }


def pod(*, ready: bool = True, app: str = "web") -> Object:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": "web-1", "labels": {"app": app}}, "status": {"conditions": conditions}}


def allowed(status: str, reason: str, message: str = "") -> Object:
    return {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message,
            "observedGeneration": 1, "lastTransitionTime": BEFORE}  # fmt: skip


def test_admitted_eviction_lowers_the_allowance_and_names_the_pod() -> None:
    found = charge(pod(), [budget(disruptionsAllowed=2, disruptedPods={"web-0": BEFORE})], NOW)
    assert found is not None
    assert found.budget == "web"
    assert found.status["disruptionsAllowed"] == 1
    assert found.status["disruptedPods"] == {"web-0": BEFORE, "web-1": NOW}
    last = charge(pod(), [budget(conditions=[allowed("True", "SufficientPods")])], NOW)
    assert last is not None
    assert last.status["conditions"] == [allowed("False", "InsufficientPods") | {"lastTransitionTime": NOW}]


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"currentHealthy": 2}, "needs 2 healthy pods and has 2 currently"),
        ({}, "does not allow evicting pods currently"),
        (
            {"conditions": [allowed("False", "SyncFailed", "no scale")], "currentHealthy": 0},
            "does not allow evicting pods currently because it failed sync: no scale",
        ),
        (
            {"conditions": [allowed("False", "Other", "no reason")]},
            "does not allow evicting pods currently (Other): no reason",
        ),
    ],
)
def test_exhausted_budget_refuses_with_429_and_its_cause(status: Object, cause: str) -> None:
    with pytest.raises(StatusError) as refused:
        charge(pod(), [budget(**{"disruptionsAllowed": 0, **status})], NOW)
    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    assert refused.value.details == {
        "causes": [{"reason": "DisruptionBudget", "message": f"The disruption budget web {cause}"}]
    }


def test_budget_that_was_not_observed_refuses_and_asks_to_retry() -> None:
    with pytest.raises(StatusError) as refused:
        charge(pod(), [budget(generation=2)], NOW)
    assert refused.value.code == 429
    assert (refused.value.details or {})["retryAfterSeconds"] == 10


def test_invalid_status_of_a_budget_refuses_with_403_and_two_budgets_with_500() -> None:
    many = {str(number): NOW for number in range(2001)}
    for budgets, code in (
        ([budget(disruptionsAllowed=-1)], 403),
        ([budget(disruptedPods=many)], 403),
        ([budget(), budget("other")], 500),
    ):
        with pytest.raises(StatusError) as refused:
            charge(pod(), budgets, NOW)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("policy", "status", "free"),
    [
        ("", {"currentHealthy": 2}, True),
        ("IfHealthyBudget", {"currentHealthy": 1}, False),
        ("", {"currentHealthy": 0, "desiredHealthy": 0}, False),
        ("AlwaysAllow", {"currentHealthy": 0}, True),
    ],
)
def test_unhealthy_pod_is_evicted_without_a_charge_as_the_policy_says(policy: str, status: Object, free: bool) -> None:
    budgets = [budget(policy=policy, **{"disruptionsAllowed": 0, **status})]
    if free:
        assert charge(pod(ready=False), budgets, NOW) is None
    else:
        with pytest.raises(StatusError):
            charge(pod(ready=False), budgets, NOW)


def test_pod_that_no_budget_selects_is_evicted_without_a_charge() -> None:
    assert charge(pod(app="other"), [budget()], NOW) is None
    every = {**budget(), "spec": {"selector": {}}}
    assert isinstance(charge(pod(app="other"), [every], NOW), Charge)
    assert charge(pod(app="other"), [{**budget(), "spec": {}}], NOW) is None
