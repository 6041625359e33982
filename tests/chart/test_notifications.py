"""The value `notifications`: what it renders, and that the reconciler and `altershield notify test` read the file."""

import helm_python
import pytest

from reconciler.receivers.file import FILE
from tests.chart.rendering import Object, containers, rendered, the, variables

SECRET: Object = {"notifications": {"secretName": "receivers"}}
VARIABLE = "ALTERSHIELD_NOTIFICATIONS_FILE"


def test_only_the_reconciler_gets_the_secret_as_a_directory(chart: helm_python.Chart) -> None:
    deployment = the(rendered(chart, SECRET), "Deployment")
    (volume,) = [each for each in deployment["spec"]["template"]["spec"]["volumes"] if each["name"] == "notifications"]
    assert volume["secret"] == {"secretName": "receivers", "items": [{"key": FILE, "path": FILE}]}
    for name, container in containers(deployment).items():
        mounts = [each for each in container.get("volumeMounts", ()) if each["name"] == "notifications"]
        if name == "reconciler":
            assert mounts == [{"name": "notifications", "mountPath": "/notifications", "readOnly": True}]
            assert variables(container)[VARIABLE] == f"/notifications/{FILE}"
        else:
            assert not mounts
            assert VARIABLE not in variables(container)


def test_without_a_secret_nothing_is_rendered(chart: helm_python.Chart) -> None:
    deployment = str(the(rendered(chart), "Deployment")).lower()
    assert "notifications" not in deployment


def test_secret_may_be_used_with_a_server(chart: helm_python.Chart) -> None:
    server = {"url": "http://altershield:8080", "tokenSecret": {"name": "token"}, "callbacks": {"enabled": True}}
    found = containers(the(rendered(chart, {**SECRET, "server": server}), "Deployment"))["reconciler"]
    assert {each["name"] for each in found["volumeMounts"]} == {
        "certificates",
        "server-token",
        "notifications",
        "token",
    }


@pytest.mark.parametrize(("values", "is_open"), [(SECRET, True), ({}, False)])
def test_network_policy_lets_notifications_reach_only_the_given_peers(
    chart: helm_python.Chart, values: Object, is_open: bool
) -> None:
    peers: list[Object] = [{"ipBlock": {"cidr": "203.0.113.0/24"}}]
    closed = the(rendered(chart, {**values, "networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]["egress"]
    policy = {"enabled": True, "notificationsTo": peers}
    opened = the(rendered(chart, {**values, "networkPolicy": policy}), "NetworkPolicy")["spec"]["egress"]
    assert [rule for rule in opened if rule not in closed] == ([{"to": peers}] if is_open else [])
