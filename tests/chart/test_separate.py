"""The value `reconciler.separate`: a Deployment of its own for the reconciler."""

import re
from typing import Any

import helm_python
import pytest

from command.install import inventory
from tests.chart.rendering import (
    DEFAULTS,
    Object,
    callback_services,
    component,
    containers,
    is_hook,
    notes,
    of_kind,
    of_reconciler,
    rendered,
    the,
)

SEPARATE: Object = {"reconciler": {"separate": True}}


def merged(values: Object, more: Object) -> Object:
    both = {**values, **more}
    for key in values.keys() & more.keys():
        if isinstance(values[key], dict) and isinstance(more[key], dict):
            both[key] = merged(values[key], more[key])
    return both


def templates(chart: helm_python.Chart, values: Object) -> dict[str, Object]:
    """The pod template of each Deployment, by component."""
    found = of_kind(rendered(chart, merged(SEPARATE, values)), "Deployment")
    return {component(obj): obj["spec"]["template"] for obj in found}


@pytest.mark.parametrize(
    "values",
    [
        {"reconciler": {"startTimeoutSeconds": 600, "observeSeconds": 5, "batchWaitSeconds": 1}},
        {"reconciler": {"preTimeoutSeconds": 5, "postTimeoutSeconds": 5, "historyLimit": 1, "leaseDurationSeconds": 5}},
        {"reconciler": {"resources": {"limits": {"memory": "2Gi"}}}},
        {"reconciler": {"extraEnv": [{"name": "A", "value": "b"}]}},
        {"reconciler": {"metricsPort": 9081}},
        {"server": {"url": "http://server:8080", "tokenSecret": {"name": "token"}}},
        {"checks": {"allowedHosts": ["*.example.com"]}},
        {"notifications": {"secretName": "receivers"}},
        {"webhooks": {"exemptNamespaces": ["monitoring"]}},
    ],
    ids=lambda values: "-".join(f"{key}.{each}" for key, group in values.items() for each in group),
)
def test_values_of_the_reconciler_roll_only_its_own_pods(chart: helm_python.Chart, values: Object) -> None:
    before, after = templates(chart, {}), templates(chart, values)
    assert before["gate"] == after["gate"]
    assert before["reconciler"] != after["reconciler"]


@pytest.mark.parametrize(
    "values",
    [
        {"reconciler": {"replicas": 5, "serviceAccount": {"annotations": {"a": "b"}}}},
        {"checks": {"jobs": {"enabled": True}, "secretNamespaces": ["shop"]}},
    ],
    ids=["objects", "permissions"],
)
def test_values_of_other_objects_of_the_reconciler_roll_no_pods(chart: helm_python.Chart, values: Object) -> None:
    assert templates(chart, {}) == templates(chart, values)


@pytest.mark.parametrize(
    "values",
    [
        {"gatekeeper": {"port": 8443, "shutdownDelaySeconds": 20, "preStopSeconds": 1}},
        {"gatekeeper": {"resources": {"limits": {"memory": "1Gi"}}, "extraEnv": [{"name": "A", "value": "b"}]}},
        {"certificates": {"leafLifetimeSeconds": 3600, "metricsPort": 9082}},
        {"hostNetwork": True, "gatekeeper": {"port": 10260}},
    ],
    ids=["port", "container", "certificates", "hostNetwork"],
)
def test_values_of_the_gatekeeper_roll_only_its_own_pods(chart: helm_python.Chart, values: Object) -> None:
    before, after = templates(chart, {}), templates(chart, values)
    assert before["reconciler"] == after["reconciler"]
    assert before["gate"] != after["gate"]


def test_both_deployments_have_their_own_objects(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"reconciler": {"separate": True, "replicas": 4}, "networkPolicy": {"enabled": True}})
    kinds = "Deployment", "ServiceAccount", "ClusterRole", "Role", "PodDisruptionBudget", "NetworkPolicy", "Service"
    for kind in kinds:
        assert the(objects, kind)["metadata"]["name"] == "altershield"
        assert of_reconciler(objects, kind)["metadata"]["name"] == "altershield-reconciler"
    assert the(objects, "Deployment")["spec"]["replicas"] == DEFAULTS["replicas"]
    assert of_reconciler(objects, "Deployment")["spec"]["replicas"] == 4


def test_by_default_no_object_belongs_to_a_separate_reconciler(chart: helm_python.Chart) -> None:
    assert not [obj for obj in rendered(chart) if component(obj) == "reconciler"]
    assert "rollout status deployment altershield-reconciler" not in notes(chart)
    assert "rollout status deployment altershield-reconciler" in notes(chart, SEPARATE)


def test_only_the_reconciler_reaches_servers_checks_and_receivers(chart: helm_python.Chart) -> None:
    peers: Any = [{"namespaceSelector": {}}]
    values: Object = {
        "server": {"url": "http://server:8080"},
        "notifications": {"secretName": "receivers"},
        "networkPolicy": {"enabled": True, "checksTo": peers, "notificationsTo": peers},
    }
    objects = rendered(chart, merged(SEPARATE, values))
    assert len(the(objects, "NetworkPolicy")["spec"]["egress"]) == 1, "DNS and the API server"
    assert len(of_reconciler(objects, "NetworkPolicy")["spec"]["egress"]) == 4
    gate = str(the(objects, "Deployment"))
    assert "receivers" not in gate
    assert "--server" not in gate


def test_callbacks_lead_to_the_reconciler_with_the_certificate_but_without_the_key_of_the_ca(
    chart: helm_python.Chart,
) -> None:
    objects = rendered(chart, merged(SEPARATE, {"server": {"callbacks": {"enabled": True}}}))
    deployment = of_reconciler(objects, "Deployment")
    (service,) = callback_services(objects)
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    (volume,) = [each for each in deployment["spec"]["template"]["spec"]["volumes"] if each["name"] == "certificates"]
    assert volume["secret"] == {
        "secretName": "altershield-tls",
        "optional": True,  # the reconciler starts before certgen has created it
        "items": [{"key": key, "path": key} for key in ("tls.crt", "tls.key")],
    }
    plain = rendered(chart, merged(SEPARATE, {"server": {"callbacks": {"enabled": True, "tls": False}}}))
    assert "certificates" not in str(of_reconciler(plain, "Deployment"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"serviceAccount": {"create": False}}, "serviceAccount.name must be set"),
        (
            {"reconciler": {"separate": True, "serviceAccount": {"create": False}}},
            "reconciler.serviceAccount.name must be set",
        ),
        (
            {"serviceAccount": {"name": "a"}, "reconciler": {"separate": True, "serviceAccount": {"name": "a"}}},
            "the gatekeeper would get the permissions of the reconciler",
        ),
    ],
)
def test_accounts_that_cannot_be_separate_are_rejected(chart: helm_python.Chart, values: Object, sentence: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(sentence)):
        rendered(chart, values)


def test_containers_that_call_the_api_server_mount_a_token_and_no_others_do(objects: list[Object]) -> None:
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    pods = [obj["spec"]["template"]["spec"] for obj in of_kind(objects, "Deployment")]
    pods += [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        (volume,) = [each for each in pod["volumes"] if each["name"] == "token"]
        token, ca, namespace = volume["projected"]["sources"]
        # the API server extends tokens that were requested for 3607 seconds to a year
        assert token["serviceAccountToken"] == {"path": "token", "expirationSeconds": 3600}
        assert ca["configMap"]["items"][0]["path"] == "ca.crt"
        assert namespace["downwardAPI"]["items"][0]["path"] == "namespace"
        for container in pod["containers"]:
            mounts = [each for each in container["volumeMounts"] if each["name"] == "token"]
            assert mounts == [{"name": "token", "mountPath": path, "readOnly": True}]
        for container in pod.get("initContainers", ()):
            assert "token" not in str(container)
    for account in (obj for obj in objects if obj["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_uninstall_knows_every_object_of_the_chart(objects: list[Object]) -> None:
    listed = {resource.kind for resource in inventory._ORDER}
    components = re.findall(r"component in \((.*)\)", inventory.SELECTOR)[0].split(",")
    for obj in objects:
        mine = obj["metadata"]["labels"].get("app.kubernetes.io/part-of") if "labels" in obj["metadata"] else None
        if mine == "altershield" and not is_hook(obj) and obj["kind"] != "CustomResourceDefinition":
            assert obj["kind"] in listed
            assert component(obj) in components


def test_gatekeeper_and_reconciler_have_the_same_user_and_image(chart: helm_python.Chart) -> None:
    gate, reconciler = templates(chart, {}).values()
    assert gate["spec"]["securityContext"] == reconciler["spec"]["securityContext"]
    images = {each["image"] for pod in (gate, reconciler) for each in pod["spec"]["containers"]}
    assert len(images) == 1
    deployment = of_reconciler(rendered(chart, SEPARATE), "Deployment")
    assert list(containers(deployment)) == ["reconciler"]
