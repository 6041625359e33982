"""The chart's objects with rules and dashboards have the same content as the files."""

import re

import helm_python
import pytest
import yaml

from dashboards.__main__ import files
from tests.chart.conftest import chart as chart
from tests.chart.rendering import Object, of_kind, rendered, the
from tests.monitoring.installed import RULES, RUNBOOKS, rules

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
    made = the(rendered(chart, values), "PrometheusRule")["spec"]["groups"]
    alerts = [alert for group in made for alert in group["rules"]]
    assert [alert["annotations"].pop("runbook_url") for alert in alerts] == [
        f"{elsewhere}{alert['alert']}.md" for alert in alerts
    ]
    plain = rules()
    for rule in plain:
        del rule["annotations"]["runbook_url"]
    assert alerts == plain, "only runbook_url may change"


@pytest.mark.parametrize("url", ["", "runbooks/", "https://wiki.example.com/runbooks", "https://wiki.example.com/a b/"])
def test_runbook_url_must_be_a_url_that_ends_with_a_slash(chart: helm_python.Chart, url: str) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema({"prometheusRule": {"runbookUrl": url}})
    assert "/prometheusRule/runbookUrl" in str(caught.value)


def test_each_dashboard_is_a_config_map_with_the_label_of_the_sidecar(chart: helm_python.Chart) -> None:
    found = {obj["metadata"]["name"]: obj for obj in of_kind(rendered(chart, VALUES), "ConfigMap")}
    assert found.keys() == {"altershield-admission", "altershield-releases", "altershield-health"}
    assert {file: text for obj in found.values() for file, text in obj["data"].items()} == files()
    for obj in found.values():
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert obj["metadata"]["annotations"] == {"grafana_folder": "AlterShield"}


def test_service_monitor_keeps_the_namespace_label_of_series(chart: helm_python.Chart) -> None:
    monitor = the(rendered(chart, VALUES), "ServiceMonitor")
    assert [endpoint["honorLabels"] for endpoint in monitor["spec"]["endpoints"]] == [True, True, True]


def test_values_in_the_docs_install_monitor_rules_and_dashboards(chart: helm_python.Chart) -> None:
    page = (RUNBOOKS.parent / "watch.md").read_text()
    (shown, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    kinds = [obj["kind"] for obj in rendered(chart, yaml.safe_load(shown))]
    assert [kinds.count(kind) for kind in ("ServiceMonitor", "PrometheusRule", "ConfigMap")] == [1, 1, 3]


def test_monitoring_objects_are_not_installed_by_default(chart: helm_python.Chart) -> None:
    kinds = {obj["kind"] for obj in rendered(chart)}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
