"""The values `checks`: what they render, and that the reconciler accepts it."""

import helm_python
import pytest

import reconciler.__main__
from altershield.api.names import SYSTEM_NAMESPACE
from command.install import rbac
from reconciler.outbound.check_options import ALLOWED_HOSTS
from reconciler.outbound.urls import AllowedHosts, allowed_hosts
from tests.chart.arguments import parsed
from tests.chart.rendering import DEFAULTS, Object, containers, of_kind, rendered, the


def hosts(chart: helm_python.Chart, values: Object) -> AllowedHosts:
    """The hosts that the reconciler allows."""
    pod = containers(the(rendered(chart, values), "Deployment"))
    return allowed_hosts(
        parsed(reconciler.__main__.app, list(pod["reconciler"]["args"])).params["checks_allowed_hosts"]
    )


def test_default_hosts_are_those_of_the_reconciler(chart: helm_python.Chart) -> None:
    assert tuple(DEFAULTS["checks"]["allowedHosts"]) == ALLOWED_HOSTS
    assert hosts(chart, {}) == allowed_hosts(ALLOWED_HOSTS)


@pytest.mark.parametrize("listed", [[], ["hooks.example.com", "*.corp.example", "10.1.2.3", "2001:db8::/32"]])
def test_reconciler_allows_the_hosts_of_the_chart(chart: helm_python.Chart, listed: list[str]) -> None:
    assert hosts(chart, {"checks": {"allowedHosts": listed}}) == allowed_hosts(listed)


def test_no_namespace_has_readable_secrets_by_default(chart: helm_python.Chart) -> None:
    assert [obj["metadata"]["name"] for obj in of_kind(rendered(chart), "Role")] == ["altershield"]


def test_each_namespace_with_secrets_has_a_role_that_only_gets_them(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"checks": {"secretNamespaces": ["shop", "pay"]}})
    for namespace in ("shop", "pay"):
        wanted = rbac.secret_reader(namespace, system_namespace=SYSTEM_NAMESPACE)
        for role in wanted:
            (found,) = [obj for obj in of_kind(objects, role["kind"]) if obj["metadata"]["namespace"] == namespace]
            assert found["metadata"]["name"] == role["metadata"]["name"]
            assert {**found, "metadata": None} == {**role, "metadata": None}


def test_network_policy_lets_checks_reach_only_the_given_peers(chart: helm_python.Chart) -> None:
    closed = the(rendered(chart, {"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]["egress"]
    peers: list[Object] = [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "10.1.0.0/16"}}]
    values = {"networkPolicy": {"enabled": True, "checksTo": peers}}
    assert all("to" not in rule for rule in closed)
    opened = the(rendered(chart, values), "NetworkPolicy")["spec"]["egress"]
    assert [rule for rule in opened if rule not in closed] == [{"to": peers}]
