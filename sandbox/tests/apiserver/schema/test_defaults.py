"""Defaults, compared with recorded answers of kube-apiserver."""

from copy import deepcopy
from typing import Any

import pytest

from kube_sandbox.apiserver.schema import defaults, fields
from kube_sandbox.apiserver.schema.pod_defaults import pull_policy
from support.answers import recorded

Object = dict[str, Any]

_OBJECTS = recorded("validation")["objects"]
_DEFAULTED = recorded("defaults")["answers"]


def defaulted(obj: Object) -> Object:
    found, _ = fields.check(deepcopy(obj), api_version=obj["apiVersion"], kind=obj["kind"])
    defaults.apply(found)
    return found


@pytest.mark.parametrize("case", _DEFAULTED, ids=lambda case: _OBJECTS[case["object"]]["kind"])
def test_object_gets_the_defaults_of_kube_apiserver(case: Object) -> None:
    found = defaulted(_OBJECTS[case["object"]])
    if found["kind"] == "CustomResourceDefinition":  # kube-apiserver sets its status at once
        found.pop("status", None)
    assert {name: value for name, value in found.items() if name != "metadata"} == case["answer"]


@pytest.mark.parametrize("obj", _OBJECTS, ids=lambda obj: obj["kind"])
def test_defaults_applied_twice_change_nothing(obj: Object) -> None:
    once = defaulted(obj)
    assert defaulted(once) == once


def test_container_requests_default_to_its_limits() -> None:
    container = {
        "name": "a",
        "image": "i",
        "resources": {"limits": {"cpu": "1", "memory": "2"}, "requests": {"cpu": "0.5"}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    (found,) = defaulted(pod)["spec"]["containers"]
    assert found["resources"]["requests"] == {"cpu": "500m", "memory": "2"}


def test_host_port_defaults_to_container_port_on_the_host_network() -> None:
    container = {"name": "a", "image": "i", "ports": [{"containerPort": 80}]}
    spec = {"hostNetwork": True, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert defaulted(pod)["spec"]["containers"][0]["ports"] == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    ]


def test_string_data_of_a_secret_is_encoded_into_data() -> None:
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "MQ=="}, "stringData": {"b": "2"},
    }  # fmt: skip
    found = defaulted(secret)
    assert (found["data"], found["type"], "stringData" in found) == ({"a": "MQ==", "b": "Mg=="}, "Opaque", False)


def test_namespace_gets_a_label_with_its_name() -> None:
    found = defaulted({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


def test_service_gets_the_same_cluster_ip_each_time() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    first, second = defaulted(service)["spec"], defaulted(service)["spec"]
    assert first == second
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    service["spec"] = {"clusterIP": "None"}
    assert defaulted(service)["spec"]["clusterIPs"] == ["None"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/a/b", "Always"),
        ("registry:5000/a/b:1", "IfNotPresent"),
        ("busybox@sha256:" + "0" * 64, "IfNotPresent"),
        ("busybox:latest@sha256:" + "0" * 64, "Always"),
        ("NO IMAGE", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy_is_always_for_the_tag_latest_only(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
