"""What the API server refuses in a DefensePolicy, by schema and CEL rules."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from altershield.api.resources import API_VERSION, DEFENSE_POLICIES
from tests.docs.pages import ROOT, blocks
from tests.support.kubectl import Kubectl

PROMETHEUS = {"url": "http://prometheus.monitoring:9090", "query": "up", "max": "0.05"}
COMPARE = {"metric": 'sum(errors{pod=~"$pods"})', "maxRatio": "1.2"}
STEPS = {"rollout": {"pods": [1]}}
CHECK = {"name": "errors", "prometheus": PROMETHEUS}
FULL = {
    "selector": {
        "matchLabels": {"app": "web", "example.com/tier": ""},
        "matchExpressions": [
            {"key": "stage", "operator": "In", "values": ["a", "b"]},
            {"key": "example.com/free", "operator": "DoesNotExist"},
        ],
    },
    "priority": -1,
    "checks": [
        CHECK,
        {"name": "server", "server": {}, "phases": ["Pre", "Post"], "timeoutSeconds": 60, "onUnknown": "hold"},
        {"name": "gate", "http": {"url": "https://gate.tools/verify", "metadata": {"team": "shop"}}},
        {"name": "smoke", "job": {"template": {"spec": {"template": {"spec": {"containers": []}}}}}},
    ],
    "observeSeconds": 0,
    "startTimeoutSeconds": 300,
    "maxStartSeconds": 86_400,
    "unschedulableSeconds": 1,
    "settleSeconds": 86_400,
    "settleRestarts": 1_000,
    "batch": "10%",
    "mode": "warn",
    "onFailure": "pause",
    "pauseSeconds": 604_800,
    "onPauseEnd": "continue",
    "onStartFailure": "suspend",
    "onNothingServes": "rollback",
    "rollbackShare": 2,
    "notify": ["shop-team", "audit"],
}


def with_check(**changes: Any) -> dict[str, Any]:
    return {"checks": [{**CHECK, **changes}]}


def with_prometheus(**changes: Any) -> dict[str, Any]:
    wanted = {**PROMETHEUS, **changes}
    return with_check(prometheus={key: value for key, value in wanted.items() if value is not None})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no kind of check": ({"checks": [{"name": "a"}]}, "exactly one of"),
    "two kinds of check": (with_check(server={}), "exactly one of"),
    "two checks of one name": ({"checks": [CHECK, CHECK]}, "Duplicate value"),
    "two server checks": ({"checks": [{"name": "a", "server": {}}, {"name": "b", "server": {}}]}, "only one check"),
    "another check called server": (with_check(name="server"), "only a check with `server`"),
    "too many checks": ({"checks": [{**CHECK, "name": f"c{number}"} for number in range(9)]}, "must have at most 8"),
    "phase twice": (with_check(phases=["Pre", "Pre"]), "Duplicate value"),
    "no phase": (with_check(phases=[]), "phases"),
    "no bound": (with_prometheus(max=None), "a sample needs a bound"),
    "not a decimal": (with_prometheus(max="1e3"), "max"),
    "number that is no text": (with_prometheus(max=1), "max"),
    "baseline without a bound": (with_prometheus(baselineQuery="up"), "needs maxIncrease or maxRatio"),
    "bound without a baseline": (with_prometheus(maxRatio="2"), "needs maxIncrease or maxRatio"),
    "minimum count of nothing": (with_prometheus(minCount=5), "minCount needs countQuery"),
    "all samples may fail": (with_prometheus(samples=2, failureLimit=2), "failureLimit must be less than samples"),
    "query and comparison": (with_prometheus(compare=COMPARE), "either query or compare"),
    "neither query nor comparison": (with_prometheus(query=None), "either query or compare"),
    "comparison with another bound": (with_prometheus(query=None, compare=COMPARE), "compare has its own bounds"),
    "comparison without a bound": (
        with_prometheus(query=None, max=None, compare={"metric": "up"}),
        "compare needs maxRatio or maxIncrease",
    ),
    "samples that nothing counts": (
        with_prometheus(query=None, max=None, compare={**COMPARE, "minSamples": 100}),
        "minSamples needs count",
    ),
    "unknown comparison": (
        with_prometheus(query=None, max=None, compare={**COMPARE, "against": "after"}),
        "Unsupported value",
    ),
    "logs and PromQL": (with_check(logs={"pattern": "panic"}), "exactly one of"),
    "logs without a pattern": ({"checks": [{"name": "a", "logs": {"pattern": ""}}]}, "pattern"),
    "repeated without steps": (with_check(everySeconds=60), "everySeconds needs rollout"),
    "repeated too often": ({**STEPS, **with_check(everySeconds=9)}, "everySeconds"),
    "repeated before the batch only": (
        {**STEPS, **with_check(everySeconds=60, phases=["Pre"])},
        "repeats a check of the phase Post",
    ),
    "repeated check of the server": (
        {**STEPS, "checks": [{"name": "server", "server": {}, "everySeconds": 60}]},
        "is not repeated",
    ),
    "check before a release without steps": (with_check(phase="PreRelease"), "PreBatch needs rollout"),
    "check before a batch without steps": (with_check(phase="PreBatch"), "PreBatch needs rollout"),
    "unknown phase": ({**STEPS, **with_check(phase="Pre")}, "Unsupported value"),
    "phases of no batch": ({**STEPS, **with_check(phase="PreBatch", phases=["Pre"])}, "they need the phase PostBatch"),
    "logs before a release": (
        {**STEPS, "checks": [{"name": "a", "logs": {"pattern": "panic"}, "phase": "PreRelease"}]},
        "they need the phase PostBatch",
    ),
    "comparison before a release": (
        {
            **STEPS,
            "checks": [{"name": "a", "phase": "PreRelease", "prometheus": {"url": "http://a", "compare": COMPARE}}],
        },
        "compare needs new pods",
    ),
    "server after a release": (
        {**STEPS, "checks": [{"name": "server", "server": {}, "phase": "PostRelease"}]},
        "cannot have the phase PostRelease",
    ),
    "repeated after a release": ({**STEPS, **with_check(phase="PostRelease", everySeconds=60)}, "runs once"),
    "not a URL": (with_prometheus(url="prometheus:9090"), "url"),
    "batch of 0": ({"batch": 0}, "batch"),
    "batch of 0%": ({"batch": "0%"}, "batch"),
    "batch of 101%": ({"batch": "101%"}, "batch"),
    "batch as text": ({"batch": "10"}, "batch"),
    "no share": ({"rollbackShare": "half"}, "rollbackShare"),
    "unknown mode": ({"mode": "Enforce"}, "Unsupported value"),
    "end of no pause": ({"onFailure": "rollback", "pauseSeconds": 60}, "pauseSeconds needs onFailure: pause"),
    "end of the default": ({"pauseSeconds": 60}, "pauseSeconds needs onFailure: pause"),
    "pause of 0 s": ({"onFailure": "pause", "pauseSeconds": 0}, "pauseSeconds"),
    "pause of more than 7 days": ({"onFailure": "pause", "pauseSeconds": 604_801}, "pauseSeconds"),
    "consequence of no end": ({"onFailure": "pause", "onPauseEnd": "rollback"}, "onPauseEnd needs pauseSeconds"),
    "unknown end of a pause": (
        {"onFailure": "pause", "pauseSeconds": 60, "onPauseEnd": "suspend"},
        "Unsupported value",
    ),
    "unknown consequence": ({"onFailure": "restart"}, "Unsupported value"),
    "operator": ({"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "Unsupported"),
    "In without values": ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "need values"),
    "Exists with values": (
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        "need values",
    ),
    "label value": ({"selector": {"matchLabels": {"a": "b c"}}}, "matchLabels"),
    "receiver with a URL": ({"notify": ["https://example.com/hook"]}, "notify"),
    "receiver without a name": ({"notify": [""]}, "notify"),
    "receiver with a name that is too long": ({"notify": ["x" * 64]}, "notify"),
    "receiver twice": ({"notify": ["team", "team"]}, "Duplicate value"),
    "too many receivers": ({"notify": [f"r{number}" for number in range(17)]}, "must have at most 16"),
    "start timeout of 0": ({"startTimeoutSeconds": 0}, "startTimeoutSeconds"),
}


def manifest(spec: dict[str, Any]) -> str:
    made = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "policy"}, "spec": spec}
    return json.dumps(made)


@pytest.fixture(scope="module")
def space(installed: Path) -> Iterator[Kubectl]:
    kubectl = Kubectl(installed, "policy-schema")
    kubectl("create", "namespace", kubectl.namespace)
    yield kubectl
    kubectl.delete_namespaces()


def test_policy_with_all_fields_is_accepted_with_its_defaults(space: Kubectl) -> None:
    space.apply(manifest(FULL))
    wanted: dict[str, Any] = copy.deepcopy(FULL)
    wanted["checks"][0]["prometheus"] |= {
        "minCount": 0, "intervalSeconds": 15, "samples": 4, "failureLimit": 0, "initialDelaySeconds": 0,
        "lagSeconds": 5,
    }  # fmt: skip
    for check in wanted["checks"]:
        check["phase"] = "PostBatch"
    assert space.json("defensepolicy", "policy")["spec"] == wanted
    space.apply(manifest({}))
    defaults = {
        "priority": 0, "mode": "enforce", "onFailure": "suspend", "onStartFailure": "rollback",
        "maxStartSeconds": 1800, "unschedulableSeconds": 600, "settleRestarts": 3,
    }  # fmt: skip
    assert space.json("defensepolicy", "policy")["spec"] == defaults
    space.apply(manifest({"notify": []}))
    assert space.json("defensepolicy", "policy")["spec"] == defaults | {"notify": []}
    assert space("get", "dp").split()[:5] == ["NAME", "MODE", "ONFAILURE", "PRIORITY", "ACCEPTED"]


@pytest.mark.parametrize("case", WRONG)
def test_api_server_refuses_wrong_policies_and_says_why(space: Kubectl, case: str) -> None:
    spec, message = WRONG[case]
    path = f"{DEFENSE_POLICIES.path(space.namespace)}?dryRun=All&fieldValidation=Strict"
    status, answer = space.request("POST", path, json.loads(manifest(spec)))
    assert status in (400, 422), answer
    assert message in answer["message"]


def test_api_server_accepts_the_examples_of_the_page(space: Kubectl) -> None:
    page = (ROOT / "docs" / "checks.md").read_text()
    parts = [part for block in blocks(page) if block.language == "yaml" for part in yaml.safe_load_all(block.text)]
    policies = [part for part in parts if part.get("kind") == "DefensePolicy"]
    assert policies
    for policy in policies:
        policy["metadata"]["namespace"] = space.namespace
        space("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(policy))


def test_server_side_apply_merges_checks_by_name(space: Kubectl) -> None:
    space("delete", "defensepolicy", "--all")
    other = {"name": "smoke", "http": {"url": "http://smoke.tools/"}}
    for manager, check in (("one", CHECK), ("two", other)):
        space(
            "apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=manifest({"checks": [check]})
        )  # fmt: skip
    names = [check["name"] for check in space.json("defensepolicy", "policy")["spec"]["checks"]]
    assert sorted(names) == ["errors", "smoke"]
