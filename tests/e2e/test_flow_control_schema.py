"""What the API server refuses in a PodDeletionFlowControl, by schema and CEL rules."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from tests.support.kubectl import Kubectl

RULES = [{"interval": "10m", "limit": 100}, {"interval": "1h30m", "limit": 200}]
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}
FULL = {
    "limitRules": RULES,
    "whiteListSelector": SELECTOR,
    "podSelector": SELECTOR,
    "namespaceSelector": SELECTOR,
    "mode": "Warn",
    "warnPercent": 50,
    "onError": "Allow",
    "breaker": {"mode": "Manual", "cooldown": "5m"},
}


def rules(*intervals: Any, limit: Any = 1) -> dict[str, Any]:
    return {"limitRules": [{"interval": interval, "limit": limit} for interval in intervals]}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no rules": ({}, "limitRules"),
    "empty rules": ({"limitRules": []}, "limitRules"),
    "too many rules": (rules(*(f"{number + 1}m" for number in range(9))), "must have at most 8"),
    "interval twice": (rules("1m", "1m"), "Duplicate value"),
    "interval twice in two forms": (rules("1h", "60m"), "each interval has one limit"),
    "interval of 0": (rules("0s"), "a duration is from 1s to 168h"),
    "interval of more than 7 days": (rules("169h"), "a duration is from 1s to 168h"),
    "interval without a unit": (rules("60"), "interval"),
    "interval in days": (rules("1d"), "interval"),
    "interval as a number": (rules(60), "interval"),
    "empty interval": (rules(""), "interval"),
    "negative limit": (rules("1m", limit=-1), "limit"),
    "share as a limit": (rules("1m", limit="10%"), "limit"),
    "unknown mode": ({**FULL, "mode": "enforce"}, "Unsupported value"),
    "unknown mode of the breaker": ({**FULL, "breaker": {"mode": "On"}}, "Unsupported value"),
    "cooldown of 0": ({**FULL, "breaker": {"cooldown": "0m"}}, "a duration is from 1s to 168h"),
    "unknown onError": ({**FULL, "onError": "Ignore"}, "Unsupported value"),
    "warnPercent of 0": ({**FULL, "warnPercent": 0}, "warnPercent"),
    "warnPercent of 101": ({**FULL, "warnPercent": 101}, "warnPercent"),
    "operator": ({**FULL, "podSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, "Unsupported"),
}


def flow_control(spec: dict[str, Any], name: str = "guard") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "PodDeletionFlowControl", "metadata": {"name": name}, "spec": spec}


def manifest(spec: dict[str, Any]) -> str:
    return json.dumps(flow_control(spec))


@pytest.fixture(scope="module")
def kubectl(installed: Path) -> Iterator[Kubectl]:
    found = Kubectl(installed, "default")
    yield found
    found("delete", "poddeletionflowcontrols", "--all")


def test_flow_control_with_all_fields_is_accepted_with_its_defaults(kubectl: Kubectl) -> None:
    kubectl.apply(manifest(FULL))
    assert kubectl.json("poddeletionflowcontrol", "guard")["spec"] == FULL
    kubectl.apply(manifest({"limitRules": RULES, "breaker": {}}))
    assert kubectl.json("poddeletionflowcontrol", "guard")["spec"] == {
        "limitRules": RULES, "mode": "Enforce", "warnPercent": 80, "onError": "Deny",
        "breaker": {"mode": "Off", "cooldown": "10m"},
    }  # fmt: skip
    assert kubectl("get", "pdfc").split()[:7] == ["NAME", "MODE", "BREAKER", "INTERVAL", "USED", "LIMIT", "AGE"]


def test_api_server_refuses_wrong_flow_controls_and_says_why(kubectl: Kubectl) -> None:
    named = {case.replace(" ", "-").lower(): each for case, each in WRONG.items()}
    items = [flow_control(spec, name) for name, (spec, _) in named.items()]
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    done = kubectl.run("create", "--dry-run=server", "--validate=false", "-f", "-", stdin=stdin)
    assert done.stdout == ""
    refusals = re.split(r"(?m)^(?=Error from server|The PodDeletionFlowControl|error: )", done.stderr)
    for name, (_, message) in named.items():
        assert any(f'"{name}"' in refusal and message in refusal for refusal in refusals), (name, done.stderr)
