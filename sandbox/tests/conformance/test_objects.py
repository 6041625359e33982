"""Writes of single objects with a client library: codes, reasons and messages."""

import json
from typing import Any

import aiohttp
import pytest

from conformance.manifests import Json, config_map, deployment
from kube_base.access.client import Client
from kube_base.access.credentials import ssl_context
from kube_base.access.errors import ApiError
from kube_base.resources import CONFIG_MAPS, DEPLOYMENTS
from support.kubectl import Kubectl


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (config_map("Wrong_Name"), 422, 'metadata.name: Invalid value: "Wrong_Name": a lowercase RFC 1123 subdomain'),
        (config_map(""), 422, "metadata.name: Required value: name or generateName is required"),
        (config_map("x", finalizers=["bad"]), 422, "name is neither a standard finalizer name nor is it fully"),
        (config_map("x", resourceVersion="5"), 500, "resourceVersion should not be set on objects to be created"),
        (config_map("x", namespace="other"), 400, "the namespace of the provided object does not match"),
        ({**config_map("x"), "kind": "Sekret"}, 400, 'no kind "Sekret" is registered for version "v1"'),
        ({**config_map("x"), "data": {"a": 1}}, 400, "json: cannot unmarshal number into Go struct field"),
        ({"apiVersion": "v1"}, 422, "name or generateName is required"),
    ],
)
async def test_invalid_create_is_refused_with_code_and_message(
    client: Client, space: Kubectl, manifest: Json, code: int, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await client.create(CONFIG_MAPS, manifest, space.namespace)
    assert caught.value.code == code
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":[1 2]}', "invalid character '2' after array element"),
        (b'{"a":', "unexpected end of JSON input"),
    ],
)
async def test_malformed_json_is_refused_as_by_go(client: Client, space: Kubectl, body: bytes, message: str) -> None:
    token = await client.configuration.get_api_key_with_prefix("BearerToken")
    headers = {"Content-Type": "application/json"} | ({"Authorization": str(token)} if token else {})
    url = client.server + CONFIG_MAPS.path(space.namespace)
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers, ssl=ssl_context(client.configuration)) as response,
    ):
        assert response.status == 400
        assert (await response.json())["message"] == (
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse"
            f" error: {message} ({body.decode()})"
        )


async def test_generation_grows_with_changes_of_the_spec_only(client: Client, space: Kubectl) -> None:
    created = await client.create(DEPLOYMENTS, deployment("counted", replicas=0, paused=True), space.namespace)
    changes: list[tuple[dict[str, Any], int]] = [
        ({"metadata": {"labels": {"x": "y"}}}, 1),
        ({"spec": {"minReadySeconds": 1}}, 2),
        ({"spec": {"minReadySeconds": 1}}, 2),
        ({"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}, 3),
    ]
    assert created["metadata"]["generation"] == 1
    for patch, generation in changes:
        patched = await client.patch(DEPLOYMENTS, patch, "counted", space.namespace)
        assert patched["metadata"]["generation"] == generation


async def test_get_at_a_future_version_times_out(client: Client, space: Kubectl) -> None:
    await client.create(CONFIG_MAPS, config_map("now"), space.namespace)
    path = CONFIG_MAPS.path(space.namespace, "now")
    with pytest.raises(ApiError, match="Too large resource version: 99999999") as caught:
        await client.request("GET", path, query={"resourceVersion": "99999999"})
    assert (caught.value.code, caught.value.retry_after) == (504, 1)


async def test_created_deployment_gets_its_defaults(client: Client, space: Kubectl) -> None:
    spec = (await client.create(DEPLOYMENTS, deployment("defaults", replicas=0), space.namespace))["spec"]
    assert spec["strategy"] == {
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }  # fmt: skip
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert pod["containers"][0]["imagePullPolicy"] == "Always"


async def test_scale_endpoint_serves_kind_scale(client: Client, space: Kubectl) -> None:
    await client.create(DEPLOYMENTS, deployment("scaled", replicas=0), space.namespace)
    path = DEPLOYMENTS.path(space.namespace, "scaled", "scale")
    scale = json.loads(await client.request("GET", path))
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["status"]["selector"] == "app=scaled"
    lines = [line.split() for line in space("get", "deployment", "scaled", "--subresource=scale").splitlines()]
    assert lines[0] == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
    with pytest.raises(ApiError, match="must be greater than or equal to 0"):
        await client.request(
            "PATCH", path, body={"spec": {"replicas": -1}}, content_type="application/merge-patch+json"
        )
