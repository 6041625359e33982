"""What the API server refuses in a PodUnavailableBudget, by schema and CEL rules."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from tests.support.kubectl import Kubectl

SELECTOR = {"matchLabels": {"app": "web"}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
FULL: dict[str, Any] = {
    "selector": SELECTOR,
    "maxUnavailable": "25%",
    "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESIZE", "RESTART"],
    "protectTotalReplicas": 1,
    "ignoredPodSelector": {"matchExpressions": [{"key": "job", "operator": "Exists"}]},
    "unhealthyPodPolicy": "IfHealthyBudget",
    "mode": "Warn",
}
RIGHT: list[dict[str, Any]] = [
    FULL,
    {"targetRef": TARGET, "minAvailable": 0},
    {"targetRef": TARGET, "maxUnavailable": "0%"},
    {"targetRef": TARGET, "minAvailable": "100%"},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"maxUnavailable": 1}, "exactly one of selector and targetRef"),
    ({"selector": SELECTOR, "targetRef": TARGET, "maxUnavailable": 1}, "exactly one of selector and targetRef"),
    ({"selector": None, "maxUnavailable": 1}, "selector"),
    ({"selector": {}, "maxUnavailable": 1}, "an empty selector would select each pod"),
    ({"selector": {"matchLabels": {}}, "maxUnavailable": 1}, "an empty selector would select each pod"),
    ({"selector": SELECTOR}, "exactly one of maxUnavailable and minAvailable"),
    ({"selector": SELECTOR, "maxUnavailable": 1, "minAvailable": 1}, "exactly one of maxUnavailable"),
    ({"selector": SELECTOR, "maxUnavailable": -1}, "greater than or equal to 0"),
    ({"selector": SELECTOR, "maxUnavailable": "101%"}, "spec.maxUnavailable"),
    ({"selector": SELECTOR, "minAvailable": "1"}, "spec.minAvailable"),
    ({"selector": SELECTOR, "minAvailable": "05%"}, "spec.minAvailable"),
    ({"selector": SELECTOR, "minAvailable": 1, "protectOperations": []}, "at least 1 items"),
    ({"selector": SELECTOR, "minAvailable": 1, "protectOperations": ["EXEC"]}, "Unsupported value"),
    ({"selector": SELECTOR, "minAvailable": 1, "protectOperations": ["DELETE", "DELETE"]}, "Duplicate value"),
    ({"selector": SELECTOR, "minAvailable": 1, "protectTotalReplicas": 0}, "greater than or equal to 1"),
    ({"selector": SELECTOR, "minAvailable": 1, "ignoredPodSelector": {}}, "an empty selector would ignore each pod"),
    ({"selector": SELECTOR, "minAvailable": 1, "mode": "Off"}, "Unsupported value"),
    ({"selector": SELECTOR, "minAvailable": 1, "unhealthyPodPolicy": "Never"}, "Unsupported value"),
    ({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}, "minAvailable": 1}, "name"),
]


def budget(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": name}, "spec": spec}


def manifest(*budgets: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": budgets})


@pytest.fixture(scope="module")
def space(installed: Path) -> Iterator[Kubectl]:
    kubectl = Kubectl(installed, "budget-schema")
    kubectl("create", "namespace", kubectl.namespace)
    yield kubectl
    kubectl.delete_namespaces()


def test_right_budgets_are_stored_with_their_defaults_and_columns(space: Kubectl) -> None:
    for number, spec in enumerate(RIGHT):
        space.apply(json.dumps(budget(f"right-{number}", spec)))
    assert space.json("pub", "right-0")["spec"] == FULL
    defaults = {
        "mode": "Enforce",
        "unhealthyPodPolicy": "AlwaysAllow",
        "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESTART"],
    }
    assert space.json("pub", "right-1")["spec"] == RIGHT[1] | defaults
    applied = [space("apply", "-f", "-", stdin=json.dumps(budget("right-1", RIGHT[1]))) for _ in range(2)]
    assert applied[1].split()[-1] == "unchanged", "the defaults are no difference for kubectl"
    header, *rows = space("get", "pub").splitlines()
    assert header.split() == ["NAME", "MODE", "ALLOWED", "CURRENT", "DESIRED", "TOTAL", "AGE"]
    assert {len(row.split()) for row in rows} == {7}, "no cell is blank"


def test_api_server_refuses_wrong_budgets_and_says_why(space: Kubectl) -> None:
    wrong = manifest(*(budget(f"wrong-{number}", spec) for number, (spec, _) in enumerate(WRONG)))
    done = space.run("create", "--dry-run=server", "--validate=false", "-f", "-", stdin=wrong)
    assert done.returncode == 1
    assert done.stdout == ""
    missing = [
        message
        for number, (_, message) in enumerate(WRONG)
        if not any(message in each for each in done.stderr.split("Error from server") if f'wrong-{number}"' in each)
    ]
    assert missing == [], done.stderr


def test_selector_and_target_of_a_budget_do_not_change_but_amounts_do(space: Kubectl) -> None:
    space.apply(json.dumps(budget("fixed", {"selector": SELECTOR, "maxUnavailable": 1})))
    space.apply(json.dumps(budget("fixed", {"selector": SELECTOR, "minAvailable": "50%"})))
    for spec, message in (
        ({"selector": {"matchLabels": {"app": "other"}}, "minAvailable": "50%"}, "the selector of a budget does not"),
        ({"targetRef": TARGET, "minAvailable": "50%"}, "the selector of a budget does not change"),
    ):
        done = space.run("replace", "-f", "-", stdin=json.dumps(budget("fixed", spec)))
        assert done.returncode == 1
        assert message in done.stderr
