"""Discovery, OpenAPI, health and version, and a session of kubectl."""

import asyncio
import os
from pathlib import Path

import pytest

from support.manifests import CRDS, crd
from support.requests import Http, serving

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_plain_and_aggregated_discovery_list_the_same_resources() -> None:
    async with serving() as http:
        await http("POST", CRDS, crd())
        groups = (await http("GET", "/apis")).json["groups"]
        aggregated = await http("GET", "/apis", Accept=_AGGREGATED)
        assert aggregated.headers["Content-Type"] == _AGGREGATED
        items = {item["metadata"]["name"]: item for item in aggregated.json["items"]}
        assert list(items) == [group["name"] for group in groups]
        for group in groups:
            for version, item in zip(group["versions"], items[group["name"]]["versions"], strict=True):
                plain = (await http("GET", f"/apis/{version['groupVersion']}")).json["resources"]
                named = {resource["name"] for resource in plain if "/" not in resource["name"]}
                assert named == {resource["resource"] for resource in item["resources"]}


async def test_openapi_v3_document_of_each_version_has_the_schemas_of_its_kinds() -> None:
    async with serving() as http:
        await http("POST", CRDS, crd())
        index = (await http("GET", "/openapi/v3")).json["paths"]
        assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= set(index)
        for where in index.values():
            document = (await http("GET", where["serverRelativeURL"])).json
            schemas = document["components"]["schemas"]
            for path in document["paths"].values():
                for operation in path.values():
                    if isinstance(operation, dict) and "responses" in operation:
                        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
                        found = schemas[schema.removeprefix("#/components/schemas/")]
                        assert operation["x-kubernetes-group-version-kind"] in found["x-kubernetes-group-version-kind"]


async def test_openapi_v2_is_served_in_protobuf_and_v3_is_not() -> None:
    async with serving() as http:
        accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        answer = await http("GET", "/openapi/v2", Accept=accept)
        assert answer.status == 200
        assert b"io.k8s.api.v1.Deployment" in answer.body
        assert (await http("GET", "/openapi/v3/api/v1", Accept=accept)).status == 406


async def test_health_and_version_need_no_credentials() -> None:
    async with serving() as http:
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await http("GET", path, Authorization="")).body == b"ok"
        assert (await http("GET", "/version", Authorization="")).json["minor"] == "36"


@pytest.mark.parametrize(
    ("path", "status", "json"),
    [("/apis/apps/v2", 404, True), ("/apis/nope/v1", 404, False), ("/nope", 404, False), ("/api/v1/nope", 404, True)],
)
async def test_unknown_url_is_not_found(path: str, status: int, *, json: bool) -> None:
    async with serving() as http:
        answer = await http("GET", path)
        assert (answer.status, answer.headers["Content-Type"].startswith("application/json")) == (status, json)


async def _kubectl(http: Http, directory: Path, *arguments: str, stdin: str = "") -> str:
    """Run kubectl; returns its stdout and stderr."""
    config = directory / "config"
    config.write_text(http.api.kubeconfig())
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        "--kubeconfig",
        str(config),
        *arguments,
        env={**os.environ, "HOME": str(directory)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(stdin.encode())
    return output.decode()


_CONFIG_MAP = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "%s"}}'


async def test_kubectl_apply_create_get_scale_explain_describe_and_delete_work(
    tmp_path: Path, has_kubectl: None
) -> None:
    async with serving(tls=True) as http:
        steps = [
            (("apply", "-f", "-"), _CONFIG_MAP % 1, "configmap/a created"),
            (("apply", "-f", "-"), _CONFIG_MAP % 1, "configmap/a unchanged"),
            (("apply", "-f", "-"), _CONFIG_MAP % 2, "configmap/a configured"),
            (("apply", "--server-side", "--force-conflicts", "-f", "-"), _CONFIG_MAP % 3, "serverside-applied"),
            (("apply", "-f", "-"), _CONFIG_MAP.replace('"data"', '"dada"') % 3, 'unknown field "dada"'),
            (("create", "deployment", "web", "--image=busybox", "--replicas=3"), "", "deployment.apps/web created"),
            (("get", "deployment", "web"), "", "web    0/3     0            0"),
            (("scale", "deployment", "web", "--replicas=2"), "", "deployment.apps/web scaled"),
            (("explain", "deployment.spec.strategy"), "", "rollingUpdate"),
            (("get", "all"), "", "deployment.apps/web"),
            (("describe", "deployment", "web"), "", "Replicas:               2 desired"),
            (("delete", "deployment", "web"), "", 'deployment.apps "web" deleted'),
            (("get", "widgets"), "", 'the server doesn\'t have a resource type "widgets"'),
        ]
        for arguments, stdin, expected in steps:
            assert expected in await _kubectl(http, tmp_path, *arguments, stdin=stdin), arguments
