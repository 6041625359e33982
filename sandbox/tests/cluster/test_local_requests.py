"""A client in the process of the API server gets the same answers with and without a connection."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError, ApiError, NotFoundError
from kube_base.resources import CLUSTER_ROLES, CONFIG_MAPS
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster import users

SPACE = "default"


@pytest.fixture(params=["connection", "local"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    async with ApiServer() as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        send = api.send if request.param == "local" else None
        async with await Client.connect(str(kubeconfig), send=send) as client:
            client.add_headers(users.headers)
            yield client


async def test_objects_are_created_patched_selected_and_deleted(client: Client) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"app": name}}}, SPACE)
    await client.patch(CONFIG_MAPS, {"data": {"key": "<ü>"}}, "a", SPACE)
    found = await client.list(CONFIG_MAPS, SPACE, label_selector="app in (a)")
    assert [each["data"] for each in found.items] == [{"key": "<ü>"}]
    await client.delete(CONFIG_MAPS, "a", SPACE)
    with pytest.raises(NotFoundError, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", SPACE)


async def test_name_that_is_escaped_in_a_url_is_found(client: Client) -> None:
    await client.create(CLUSTER_ROLES, {"metadata": {"name": "system:a b"}, "rules": []})
    assert (await client.get(CLUSTER_ROLES, "system:a b"))["metadata"]["name"] == "system:a b"


async def test_refusal_is_an_error_with_the_status_of_the_api_server(client: Client) -> None:
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, SPACE)
    with pytest.raises(AlreadyExistsError, match='configmaps "a" already exists'):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, SPACE)
    with pytest.raises(ApiError, match="the server could not find the requested resource"):
        await client.request("GET", "/apis/apps/v1/none")


async def test_write_has_the_rights_of_the_impersonated_user(client: Client) -> None:
    with (
        users.acting_as(users.Impersonated("mallory")),
        pytest.raises(ApiError, match='User "mallory" cannot create resource "configmaps"'),
    ):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, SPACE)


async def test_watch_gets_the_changes_of_other_requests(client: Client) -> None:
    version = (await client.list(CONFIG_MAPS, SPACE)).metadata.resource_version
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, SPACE)
    async for event in client.watch(CONFIG_MAPS, SPACE, resource_version=version):
        assert event.type == "ADDED"
        break
