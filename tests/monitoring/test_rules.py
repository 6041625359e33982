"""The alerts: Prometheus accepts them, promtool tests them on artificial series, and each has a runbook."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from altershield.admission.registration import Feature
from altershield.admission.webhooks import MUTATING, VALIDATING
from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.rendering import CHART
from tests.monitoring.conftest import Promtool
from tests.monitoring.installed import ALERTS, RULES, RUNBOOKS, all_rules, rules

UNIT_TESTS = [
    Path(__file__).parent / f"{name}.yaml"
    for name in ("rules", "gate_rules", "protection_rules", "health_rules", "long_rules")
]


def test_prometheus_accepts_the_rules(promtool: Promtool) -> None:
    promtool("check", "rules", RULES)


def needed(everything: list[dict[str, Any]], asked: set[str]) -> list[dict[str, Any]]:
    """The groups of rules, with the alerts that are asked for and all recording rules. promtool needs 0.1 ms for each
    rule at each simulated minute, also for a rule without series."""
    groups = [
        {**group, "rules": [rule for rule in group["rules"] if "record" in rule or rule["alert"] in asked]}
        for group in everything
    ]
    return [group for group in groups if group["rules"]]


def test_no_rule_depends_on_an_alert() -> None:
    """`needed` leaves out alerts."""
    assert not any("ALERTS" in rule["expr"] for rule in all_rules())


def test_each_alert_fires_in_its_cases_and_stays_silent_in_others(promtool: Promtool, tmp_path: Path) -> None:
    everything = yaml.safe_load(RULES.read_text())["groups"]
    groups: list[dict[str, Any]] = []
    files: list[Path] = []
    # all values as text, as promtool reads them: `values: 0x300` is no hexadecimal number
    for content in (yaml.load(path.read_text(), yaml.BaseLoader) for path in UNIT_TESTS):  # noqa: S506  (ours)
        for group in content["tests"]:
            rule_file, file = tmp_path / f"rules-{len(files)}.json", tmp_path / f"tests-{len(files)}.json"
            asked = {test["alertname"] for test in group["alert_rule_test"]}
            rule_file.write_text(json.dumps({"groups": needed(everything, asked)}))  # JSON is YAML
            file.write_text(json.dumps({**content, "rule_files": [str(rule_file)], "tests": [group]}))
            groups.append(group)
            files.append(file)
    promtool("test", "rules", *files)
    tests = [test for group in groups for test in group["alert_rule_test"]]
    tried = {test["alertname"] for test in tests}
    assert tried == ALERTS == {test["alertname"] for test in tests if not test.get("exp_alerts")}
    fired = {
        (test["alertname"], alert["exp_labels"]["severity"], alert["exp_labels"].get("seen_by"))
        for test in tests
        for alert in test.get("exp_alerts", ())
    }
    assert fired == {(rule["alert"], rule["labels"]["severity"], rule["labels"].get("seen_by")) for rule in rules()}


def test_prometheus_accepts_the_configuration_in_the_docs(promtool: Promtool, tmp_path: Path) -> None:
    page = (RUNBOOKS.parent / "watch.md").read_text()
    (shown,) = [
        block for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "job" in block
    ]
    configuration = yaml.safe_load(shown)
    (job,) = configuration["scrape_configs"]
    # Debian's promtool has no Kubernetes service discovery and refuses this field, so it is compared here instead.
    discovery = job.pop("kubernetes_sd_configs")
    assert discovery == [{"role": "pod", "namespaces": {"names": [SYSTEM_NAMESPACE]}}]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    (tmp_path / RULES.name).write_text(RULES.read_text())
    promtool("check", "config", tmp_path / "prometheus.yaml")


def test_rule_in_the_docs_names_held_deployments_as_the_alert_that_it_inhibits(
    promtool: Promtool, tmp_path: Path
) -> None:
    page = (RUNBOOKS.parent / "watch.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    (shown,) = [block for block in blocks if "groups" in block]
    (inhibition,) = [rule for block in blocks for rule in block.get("inhibit_rules", ())]
    assert inhibition["equal"] == ["cluster", "namespace", "deployment"]
    ((rule,),) = [group["rules"] for group in shown["groups"]]
    assert inhibition["source_matchers"] == [f'alertname="{rule["alert"]}"']
    step = 'altershield_release_step{{pod="{}", namespace="shop", kind="{}", workload="{}", version="v", phase="{}"}}'
    held = [("a", "deployment", "web", "Soaking"), ("b", "deployment", "web", "Soaking")]
    others = [("a", "deployment", "failed", "Stopped"), ("a", "statefulset", "db", "Soaking")]
    labels = {"severity": "none", "namespace": "shop", "workload": "web", "deployment": "web"}
    test = {
        "interval": "1m",
        "input_series": [{"series": step.format(*each), "values": "2x5"} for each in (*held, *others)],
        "alert_rule_test": [
            {
                "alertname": rule["alert"],
                "eval_time": "2m",
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": {}}],
            }
        ],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(shown))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    promtool("test", "rules", tmp_path / "tests.yaml")


def test_all_required_alerts_exist() -> None:
    assert {rule["alert"] for rule in rules()} == ALERTS


def test_rules_select_the_webhooks_of_releases_or_those_that_protect_what_runs_and_no_others() -> None:
    text = RULES.read_text()
    asked_of_api_servers = re.findall(r'\bname=~"([^"]+)"', text)
    webhooks = (*MUTATING, *VALIDATING)
    releases = {webhook.name for webhook in webhooks if webhook.feature == Feature.RELEASES}
    protections = {webhook.name for webhook in webhooks} - releases
    others = {"mpod.kb.io", "vjob.kb.io"}
    selected = [
        frozenset(name for name in releases | protections | others if re.fullmatch(pattern, name))
        for pattern in asked_of_api_servers
    ]
    assert set(selected) == {frozenset(releases), frozenset(protections), frozenset({"vpod-eviction.kb.io"})}
    assert not re.search(r'\b(name|webhook)="', text)


def test_alerts_on_counters_that_any_pod_can_raise_need_those_of_api_servers_too() -> None:
    """Any pod that reaches the gatekeeper can send reviews, if client certificates are not required."""
    own = {rule["alert"] for rule in rules() if "altershield_admission_" in rule["expr"]}
    confirmed = {"AlterShieldDenialStorm", "AlterShieldDrainBlocked"}
    # Each use of an override, also by a forged review, is recorded in the override, and worth an alert.
    assert own == {*confirmed, "AlterShieldGatekeeperErrors", "AlterShieldSlow", "AlterShieldOverrideUsed"}
    for rule in rules():
        if rule["alert"] in confirmed:
            assert "and on (cluster)" in rule["expr"]
            assert "apiserver_admission_" in rule["expr"]
    # A pod can only raise these if the gatekeeper is overloaded, which is a reason for the alert.
    (errors,) = [rule["expr"] for rule in rules() if rule["alert"] == "AlterShieldGatekeeperErrors"]
    assert 'code=~"5.."' in errors


def test_every_expression_keeps_the_cluster() -> None:
    for rule in all_rules():
        labels = re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
        assert all(found.split(", ")[0] == "cluster" for found in labels), rule
        summed = re.findall(r"\b(?:sum|max|min|count|group) ?\(", rule["expr"])
        assert summed == [], f"an aggregation without `by`: {rule}"


def test_a_number_with_a_name_is_a_threshold_of_the_chart() -> None:
    alerts = yaml.safe_load((CHART / "values.yaml").read_text())["prometheusRule"]["alerts"]
    assert alerts.keys() == ALERTS
    found: dict[str, dict[str, float]] = {alert: {} for alert in ALERTS}
    for rule in rules():
        for number, name in re.findall(r"([0-9.]+)\s+# threshold: (\w+)", rule["expr"]):
            assert found[rule["alert"]].setdefault(name, float(number)) == float(number)
    slow = found["AlterShieldSlow"]
    assert slow == {"mutatingSeconds": 1, "validatingSeconds": 1.5}, "shares of the default timeouts, 2 s and 3 s"
    found["AlterShieldSlow"] = {"share": 0.5}
    other = ("enabled", "for", "severity")
    assert found == {alert: {key: v for key, v in alerts[alert].items() if key not in other} for alert in alerts}


def test_alerts_have_severity_summary_description_and_runbook() -> None:
    home = yaml.safe_load((CHART / "Chart.yaml").read_text())["home"]
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"{home}/blob/main/docs/runbooks/{rule['alert']}.md"


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == ALERTS
    for alert in ALERTS:
        text = (RUNBOOKS / f"{alert}.md").read_text()
        assert text.startswith(f"# {alert}\n")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["What it means", "First look", "Repair"], alert
