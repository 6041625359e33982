"""Defaults, against recorded answers of a real kube-apiserver."""

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
def test_an_object_gets_what_the_real_server_gives_it(case: Object) -> None:
    found = defaulted(_OBJECTS[case["object"]])
    if found["kind"] == "CustomResourceDefinition":  # which the server installs at once
        found.pop("status", None)
    assert {name: value for name, value in found.items() if name != "metadata"} == case["answer"]


@pytest.mark.parametrize("obj", _OBJECTS, ids=lambda obj: obj["kind"])
def test_what_has_its_defaults_stays_as_it_is(obj: Object) -> None:
    once = defaulted(obj)
    assert defaulted(once) == once


def test_a_pod_requests_what_it_is_limited_to() -> None:
    container = {
        "name": "a",
        "image": "i",
        "resources": {"limits": {"cpu": "1", "memory": "2"}, "requests": {"cpu": "0.5"}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    (found,) = defaulted(pod)["spec"]["containers"]
    assert found["resources"]["requests"] == {"cpu": "500m", "memory": "2"}


def test_ports_of_the_hosts_network_are_the_hosts() -> None:
    container = {"name": "a", "image": "i", "ports": [{"containerPort": 80}]}
    spec = {"hostNetwork": True, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert defaulted(pod)["spec"]["containers"][0]["ports"] == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    ]


def test_a_secrets_texts_are_encoded() -> None:
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "MQ=="}, "stringData": {"b": "2"},
    }  # fmt: skip
    found = defaulted(secret)
    assert (found["data"], found["type"], "stringData" in found) == ({"a": "MQ==", "b": "Mg=="}, "Opaque", False)


def test_a_namespace_is_labelled_with_its_name() -> None:
    found = defaulted({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


def test_a_service_keeps_its_address() -> None:
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
def test_an_image_is_pulled_always_when_it_is_the_latest(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
