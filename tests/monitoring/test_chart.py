"""What the chart makes of rules and dashboards: the operator's objects with their texts as they are in the files."""

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


def test_rules_reach_the_operator_as_they_are(chart: helm_python.Chart) -> None:
    rule = the(rendered(chart, VALUES), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text()), "templates of alerts must survive Helm's"
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_runbooks_may_be_elsewhere(chart: helm_python.Chart) -> None:
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
    assert alerts == plain, "nothing else of them is changed"


@pytest.mark.parametrize("url", ["", "runbooks/", "https://wiki.example.com/runbooks", "https://wiki.example.com/a b/"])
def test_where_runbooks_are_is_a_folder_on_a_server(chart: helm_python.Chart, url: str) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema({"prometheusRule": {"runbookUrl": url}})
    assert "/prometheusRule/runbookUrl" in str(caught.value)


def test_each_dashboard_is_a_config_map_that_grafanas_sidecar_finds(chart: helm_python.Chart) -> None:
    found = {obj["metadata"]["name"]: obj for obj in of_kind(rendered(chart, VALUES), "ConfigMap")}
    assert found.keys() == {"altershield-admission", "altershield-releases", "altershield-health"}
    assert {file: text for obj in found.values() for file, text in obj["data"].items()} == files()
    for obj in found.values():
        assert obj["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert obj["metadata"]["annotations"] == {"grafana_folder": "AlterShield"}


def test_a_workloads_namespace_does_not_give_way_to_that_of_the_pod_that_tells_of_it(chart: helm_python.Chart) -> None:
    monitor = the(rendered(chart, VALUES), "ServiceMonitor")
    assert [endpoint["honorLabels"] for endpoint in monitor["spec"]["endpoints"]] == [True, True, True]


def test_the_values_that_the_documents_show_install_all_of_it(chart: helm_python.Chart) -> None:
    page = (RUNBOOKS.parent / "watch.md").read_text()
    (shown, *_) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    kinds = [obj["kind"] for obj in rendered(chart, yaml.safe_load(shown))]
    assert [kinds.count(kind) for kind in ("ServiceMonitor", "PrometheusRule", "ConfigMap")] == [1, 1, 3]


def test_nothing_of_it_is_installed_unasked(chart: helm_python.Chart) -> None:
    kinds = {obj["kind"] for obj in rendered(chart)}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
