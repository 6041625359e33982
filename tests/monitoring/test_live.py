"""Prometheus scrapes AlterShield's processes during releases and an outage. The queries of all dashboards, alerts and
runbooks then return data."""

import asyncio
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from command.demo.sample import NAMESPACE
from tests.monitoring.conftest import Promtool, program
from tests.monitoring.installed import ALERTS, RULES, RUNBOOKS, loaded, panels, rules
from tests.monitoring.live import CLUSTER, CONFIGURATION, Watched, rename, watched
from tests.monitoring.prometheus import Prometheus, selectors
from tests.support.polling import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("monitoring")]

RANGE = 240
"""Time range of the dashboards in seconds. It covers all releases and the outage."""

VARIABLES = {
    "$__rate_interval": "8s",
    "$__range": f"{RANGE}s",
    "$cluster": CLUSTER,
    "$namespace": SYSTEM_NAMESPACE,
    "$workload_namespace": NAMESPACE,
}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, Prometheus]]:
    with watched(tmp_path_factory.mktemp("live"), program("prometheus"), RULES) as running:
        yield running


@pytest.fixture
def prometheus(live: tuple[Watched, Prometheus]) -> Prometheus:
    return live[1]


def substituted(expression: str) -> str:
    """The query with values for Grafana's variables."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


def shown() -> dict[str, dict[str, Any]]:
    """All panels, by dashboard and title."""
    return {
        f"{dashboard['title']}: {panel['title']}": panel
        for dashboard in loaded().values()
        for panel in panels(dashboard)
    }


@pytest.mark.parametrize("title", shown())
def test_every_panel_shows_data(title: str, prometheus: Prometheus) -> None:
    for target in shown()[title]["targets"]:
        query = substituted(target["expr"])
        eventually(lambda q=query, i=target["instant"]: prometheus.numbers(q, RANGE, instant=i), query)  # type: ignore[misc]
        for selector in selectors(query):  # wait: some alerts fire later
            eventually(lambda s=selector: prometheus.matches(s), selector)  # type: ignore[misc]


@pytest.mark.parametrize("dashboard", loaded())
def test_every_variable_has_values(dashboard: str, prometheus: Prometheus) -> None:
    for variable in loaded()[dashboard]["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
            values = prometheus.get(f"label/{label}/values", **{"match[]": metric})
            assert {CLUSTER, SYSTEM_NAMESPACE, NAMESPACE} & set(values), variable["name"]


def test_series_of_all_alerts_exist(prometheus: Prometheus) -> None:
    for rule in rules():
        found = selectors(rule["expr"])
        assert found, rule["alert"]
        for selector in found:
            if selector.endswith('reason!~"approval|person|paused|window|freeze|limit"}'):
                continue  # no release in steps waits for the cluster here
            assert prometheus.matches(selector), f"{rule['alert']}: {selector}"
    evaluated = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in evaluated if rule["type"] == "alerting"} == ALERTS
    assert {rule["health"] for rule in evaluated} == {"ok"}, [rule.get("lastError") for rule in evaluated]


EASED = {
    "(altershield_webhooks) == 0": "(altershield_webhooks) > 0",  # a later test deletes a webhook configuration
    "> 20": "> 0",
    "> 5  # threshold: namespaceDenials": "> 0",
    "> 0.5  # threshold: share": "> 0.01",
    "> 0  # threshold: errors": ">= 0",
    "> 0  # threshold: objects": ">= 0",
    "> 0  # threshold: events": ">= 0",
    "> 1  # threshold: mutatingSeconds": "> 0",
    "> 1.5  # threshold: validatingSeconds": "> 0",
    "> 120": ">= 0",
    'rollback"}) == 0': 'rollback"}) > 0',
    "> 86400": "> 1",
    "> 14400": "> 1",
    "> 3600": "> 1",
    "> 600": "> 1",
    "lifetime_seconds / ": "lifetime_seconds * ",  # no certificate expires soon
    "2678400": "Inf",
    "432000": "Inf",
    "> 259200": "> 1",
    "> 604800": "> 1",
    "unusable == 1": "unusable == 0",
    'state="Open"}) == 1': 'state="Open"}) == 0',
    "_used_ratio)\n>=": "_used_ratio)\n<=",
    "> 0  # threshold: deletions": ">= 0",
    "> 0  # threshold: budgets": ">= 0",
    "> 0  # threshold: disruptions": ">= 0",
    "> 180": "> 1",
}
"""Conditions of rules that take too long or do not occur here, and the conditions that replace them."""


def hastened(expression: str) -> str:
    """The expression of a rule with eased conditions, and with seconds instead of minutes: Prometheus scrapes every
    second here."""
    for strict, eased in EASED.items():
        expression = expression.replace(strict, eased)
    return re.sub(r"\b(\d+)m\b", r"\1s", expression)


def test_each_eased_condition_occurs_in_a_rule() -> None:
    asked = "".join(rule["expr"] for rule in rules())
    assert [strict for strict in EASED if strict not in asked] == []


NEVER_TRUE = (
    "AlterShieldReconcilerDown",
    "AlterShieldNoLeader",
    "AlterShieldClusterSilent",
    "AlterShieldUnchecked",
    "AlterShieldMemoryHigh",
    "AlterShieldReleaseHeldWithoutReconciler",
)
"""The rules' unit tests cover these: there is always a leader here, no check, and no memory limit."""


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(rule, id=f"{rule['alert']}-{rule['labels']['severity']}")
        for rule in rules()
        if rule["alert"] not in NEVER_TRUE
        if rule["labels"].get("setting") != "policies"  # nobody changes a policy
    ],
)
def test_expression_of_each_rule_is_true_at_some_time(rule: dict[str, Any], live: tuple[Watched, Prometheus]) -> None:
    processes, prometheus = live
    query = hastened(rule["expr"])
    eventually(lambda: prometheus.between(query, processes.since, time.time(), step=1), query)


def test_alerts_on_the_outage_the_override_and_the_fuse_fire_and_no_others(prometheus: Prometheus) -> None:
    def firing() -> set[str]:
        alerts = prometheus.get("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    # Not AlterShieldRolledBack: the series of a namespace begins with its first rollback, and this Prometheus is too
    # young to know that it did not exist before. The rules' unit tests cover it.
    expected = {
        "AlterShieldGatekeeperDown",
        "AlterShieldFailOpen",
        "AlterShieldProtectionFailOpen",
        "AlterShieldUngatedRelease",
        "AlterShieldOverrideUsed",
        "AlterShieldFuseTripped",
    }
    eventually(lambda: expected <= firing(), "the alerts to fire")
    assert firing() == expected, "no other alert may fire"


@pytest.mark.parametrize("alert", sorted(ALERTS))
def test_queries_of_each_runbook_return_known_series(alert: str, prometheus: Prometheus) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text()
    for query in re.findall(r"^```promql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        prometheus.get("query", query=query)
        for selector in selectors(query):
            assert prometheus.matches(selector), selector


@pytest.mark.parametrize("container", ["gatekeeper", "reconciler", "certgen"])
def test_promtool_accepts_the_metrics_of_each_process(
    container: str, live: tuple[Watched, Prometheus], promtool: Promtool
) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{live[0].ports[container, 0]}/metrics") as answer:
        text = answer.read().decode()
    assert f'altershield_build_info{{component="{container}"' in text
    assert promtool("check", "metrics", stdin=text) == ""


def test_release_series_have_the_namespace_of_the_workload(prometheus: Prometheus) -> None:
    expected = {
        (NAMESPACE, "deployment", "sleep", "Suspend", "person", ""),
        (NAMESPACE, "deployment", "sleep", "Failed", "health", ""),
        (NAMESPACE, "deployment", "broken", "Suspend", "health", ""),
        (NAMESPACE, "deployment", "stalled", "Running", "", "NotRolledOut"),
    }

    def found() -> list[dict[str, str]]:
        series = prometheus.get("query", query="altershield_release_entered_timestamp_seconds")["result"]
        return [each["metric"] for each in series]

    def named() -> set[tuple[str, ...]]:
        labels = ("namespace", "kind", "workload", "state", "by", "stalled")
        return {tuple(each.get(label, "") for label in labels) for each in found()}

    # the reconciler repeats the writes that failed during the outage
    eventually(lambda: expected <= named(), f"{expected} among {named()}")
    assert "exported_namespace" not in set().union(*found())


def test_a_missing_webhook_configuration_is_detected_although_another_one_exists(
    live: tuple[Watched, Prometheus],
) -> None:
    processes, prometheus = live
    (rule,) = [rule for rule in rules() if rule["alert"] == "AlterShieldNotAsked"]

    def missed() -> bool:
        return prometheus.value(rule["expr"]) is not None

    assert not missed()
    asyncio.run(rename(processes, CONFIGURATION, "somebody-elses"))
    eventually(missed, "certgen to report the missing webhook configuration")
    asyncio.run(rename(processes, "somebody-elses", CONFIGURATION))
    eventually(lambda: not missed(), "certgen to find the webhook configuration again")
