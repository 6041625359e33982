"""The chart's objects with rules and dashboards have the same content as the files."""

import json
import re
from pathlib import Path

import helm_python
import pytest
import yaml

from dashboards.__main__ import files
from tests.chart.conftest import chart as chart
from tests.chart.rendering import DEFAULTS, Object, of_kind, rendered, the
from tests.monitoring.conftest import Promtool
from tests.monitoring.installed import ALERTS, RULES, RUNBOOKS, rules

VALUES: Object = {
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True, "annotations": {"grafana_folder": "AlterShield"}},
}


def test_prometheus_rule_contains_the_rules_unchanged(chart: helm_python.Chart) -> None:
    rule = the(rendered(chart, VALUES), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text()), "Helm must not evaluate the alerts' own templates"
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_runbook_url_replaces_only_the_base_of_the_links(chart: helm_python.Chart) -> None:
    elsewhere = "http://wiki.example.com/altershield/"
    values = {"prometheusRule": {"enabled": True, "runbookUrl": elsewhere}}
    alerts = alerts_of(chart, values["prometheusRule"])
    assert [alert["annotations"].pop("runbook_url") for alert in alerts] == [
        f"{elsewhere}{alert['alert']}.md" for alert in alerts
    ]
    plain = rules()
    for rule in plain:
        del rule["annotations"]["runbook_url"]
    assert alerts == plain, "only runbook_url may change"
    shown = [panel for text in dashboards_of(chart, values) for panel in json.loads(text)["panels"]]
    assert {link["url"] for panel in shown for link in panel.get("links", ())} == {
        f"{elsewhere}{alert}.md" for alert in linked()
    }


def alerts_of(chart: helm_python.Chart, values: Object, **more: Object) -> list[Object]:
    """The alerts of the PrometheusRule with these values of `prometheusRule`."""
    groups = the(rendered(chart, {"prometheusRule": {"enabled": True, **values}, **more}), "PrometheusRule")["spec"]
    return [rule for group in groups["groups"] for rule in group["rules"] if "alert" in rule]


def dashboards_of(chart: helm_python.Chart, values: Object) -> list[str]:
    made = rendered(chart, {**values, "dashboards": {"enabled": True}})
    return [text for obj in of_kind(made, "ConfigMap") for text in obj["data"].values()]


def linked() -> set[str]:
    """The alerts whose runbooks panels link to."""
    text = "".join(files().values())
    return set(re.findall(r"/docs/runbooks/(AlterShield\w+)\.md", text))


THRESHOLDS = [
    (alert, name)
    for alert, values in DEFAULTS["prometheusRule"]["alerts"].items()
    for name in values
    if name not in ("enabled", "for", "severity")
]


def test_each_threshold_of_an_alert_can_be_set(chart: helm_python.Chart) -> None:
    """In one release, each to another number."""
    numbers: dict[str, dict[str, float]] = {alert: {} for alert in ALERTS}
    for number, (alert, name) in enumerate(THRESHOLDS, start=1234567):
        numbers[alert][name] = 0.25 if name == "share" else 3 if name == "replicas" else number
    changed = alerts_of(chart, {"alerts": numbers})
    numbers["AlterShieldSlow"] = {"mutatingSeconds": 0.5, "validatingSeconds": 0.75}  # the share of the timeouts
    assert changed == [with_numbers(rule, numbers[rule["alert"]]) for rule in rules()]


def with_numbers(rule: Object, numbers: dict[str, float]) -> Object:
    """The alert with these numbers before the comments `threshold: NAME`."""
    marked = re.compile(r"[0-9.]+(?=\s+# threshold: (\w+))")
    return {**rule, "expr": marked.sub(lambda found: str(numbers[found[1]]), rule["expr"])}


def test_alert_can_be_left_out_and_its_severity_and_duration_can_be_set(chart: helm_python.Chart) -> None:
    alerts = {
        "AlterShieldClusterSilent": {"enabled": False},
        "AlterShieldGatekeeperDown": {"severity": "page", "for": "30s"},
    }
    found = alerts_of(chart, {"alerts": alerts, "alertLabels": {"team": "platform"}})

    assert {rule["alert"] for rule in found} == ALERTS - {"AlterShieldClusterSilent"}
    down = [rule for rule in found if rule["alert"] == "AlterShieldGatekeeperDown"]
    assert {(rule["labels"]["severity"], rule["for"]) for rule in down} == {("page", "30s")}
    assert {rule["labels"]["team"] for rule in found} == {"platform"}


def test_all_alerts_can_be_left_out(chart: helm_python.Chart) -> None:
    assert alerts_of(chart, {"alerts": {alert: {"enabled": False} for alert in ALERTS}}) == []


def test_redundancy_is_not_expected_of_fewer_replicas_than_the_threshold(chart: helm_python.Chart) -> None:
    names = {rule["alert"] for rule in alerts_of(chart, {}, replicas=1)}  # type: ignore[arg-type]
    assert names == ALERTS - {"AlterShieldRedundancyLost"}


@pytest.mark.parametrize(
    ("values", "all_components"),
    [
        ({"reconciler": {"separate": True, "replicas": 1}}, False),
        ({"reconciler": {"separate": True, "replicas": 2}}, True),
        ({"reconciler": {"separate": False, "replicas": 1}}, True),
        ({"replicas": 1, "autoscaling": {"enabled": True}}, True),
    ],
)
def test_redundancy_follows_the_pods_of_a_separate_reconciler_and_of_an_autoscaler(
    chart: helm_python.Chart, values: Object, all_components: bool
) -> None:
    (lost,) = [rule for rule in alerts_of(chart, {}, **values) if rule["alert"] == "AlterShieldRedundancyLost"]
    assert ('{component!="reconciler"}' not in lost["expr"]) == all_components


def test_latency_alert_follows_the_timeouts_of_the_webhooks(chart: helm_python.Chart) -> None:
    timeouts = {"mutating": {"timeoutSeconds": 5}, "validating": {"timeoutSeconds": 10}}
    (slow,) = [rule for rule in alerts_of(chart, {}, webhooks=timeouts) if rule["alert"] == "AlterShieldSlow"]
    assert "> 2.5  # threshold: mutatingSeconds" in slow["expr"]
    assert "> 5  # threshold: validatingSeconds" in slow["expr"]


def test_rules_are_accepted_by_prometheus_with_changed_thresholds(
    chart: helm_python.Chart, promtool: Promtool, tmp_path: Path
) -> None:
    alerts = {alert: {name: 0.25 if name == "share" else 7} for alert, name in THRESHOLDS}
    made = the(
        rendered(chart, {"replicas": 9, "prometheusRule": {"enabled": True, "alerts": alerts}}), "PrometheusRule"
    )
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(made["spec"]))
    promtool("check", "rules", tmp_path / "rules.yaml")


def test_rules_and_dashboards_go_to_the_namespaces_where_they_are_looked_for(chart: helm_python.Chart) -> None:
    values = {"prometheusRule": {"enabled": True, "namespace": "a"}, "dashboards": {"enabled": True, "namespace": "b"}}
    objects = rendered(chart, values)
    assert the(objects, "PrometheusRule")["metadata"]["namespace"] == "a"
    assert {obj["metadata"]["namespace"] for obj in of_kind(objects, "ConfigMap")} == {"b"}


def test_grafana_operator_gets_one_dashboard_for_each_config_map(chart: helm_python.Chart) -> None:
    operator = {"enabled": True, "instanceLabels": {"grafana": "main"}, "folder": "", "resyncPeriod": "5m"}
    objects = rendered(chart, {"dashboards": {"namespace": "monitoring", "grafanaOperator": operator}})
    config_maps = {obj["metadata"]["name"]: obj for obj in of_kind(objects, "ConfigMap")}
    boards = of_kind(objects, "GrafanaDashboard")
    assert len(boards) == len(config_maps) == 5
    for board in boards:
        spec, found = board["spec"], config_maps[board["spec"]["configMapRef"]["name"]]
        assert spec["configMapRef"]["key"] in found["data"]
        assert board["metadata"]["namespace"] == found["metadata"]["namespace"] == "monitoring"
        assert spec["instanceSelector"] == {"matchLabels": {"grafana": "main"}}
        assert (spec["resyncPeriod"], spec["allowCrossNamespaceImport"]) == ("5m", True)
        assert "folder" not in spec
        assert "grafana_dashboard" not in found["metadata"]["labels"], "a sidecar must not load it too"


@pytest.mark.parametrize("url", ["", "runbooks/", "https://wiki.example.com/runbooks", "https://wiki.example.com/a b/"])
def test_runbook_url_must_be_a_url_that_ends_with_a_slash(chart: helm_python.Chart, url: str) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema({"prometheusRule": {"runbookUrl": url}})
    assert "/prometheusRule/runbookUrl" in str(caught.value)


def test_each_dashboard_is_a_config_map_with_the_label_of_the_sidecar(chart: helm_python.Chart) -> None:
    found = {obj["metadata"]["name"]: obj for obj in of_kind(rendered(chart, VALUES), "ConfigMap")}
    boards = ("admission", "releases", "gates", "protections", "health")
    assert found.keys() == {f"altershield-{board}" for board in boards}
    assert {file: text for obj in found.values() for file, text in obj["data"].items()} == files()
    for obj in found.values():
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert obj["metadata"]["annotations"] == {"grafana_folder": "AlterShield"}


def test_service_monitor_keeps_the_namespace_label_of_series(chart: helm_python.Chart) -> None:
    monitor = the(rendered(chart, VALUES), "ServiceMonitor")
    assert [endpoint["honorLabels"] for endpoint in monitor["spec"]["endpoints"]] == [True, True, True]


def test_values_in_the_docs_install_monitor_rules_and_dashboards(chart: helm_python.Chart) -> None:
    page = (RUNBOOKS.parent / "watch.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    others = ("scrape_configs", "inhibit_rules", "groups:")  # of Prometheus and Alertmanager
    shown = [yaml.safe_load(block) for block in blocks if not any(each in block for each in others)]
    found = []
    for values in shown:
        chart.validate_schema(values)
        kinds = [obj["kind"] for obj in rendered(chart, values)]
        wanted = ("ServiceMonitor", "PrometheusRule", "ConfigMap", "GrafanaDashboard")
        found.append([kinds.count(kind) for kind in wanted])
    assert found == [[1, 1, 5, 0], [0, 1, 0, 0], [0, 0, 5, 5]]


def test_monitoring_objects_are_not_installed_by_default(chart: helm_python.Chart) -> None:
    kinds = {obj["kind"] for obj in rendered(chart)}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
