"""A gatekeeper behind the sandbox's API server, without a reconciler."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api import labels
from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.resources import NAMESPACES, Resource
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster.clone_sets import crd as clone_set_crd
from tests.support import workloads

from .serving import install_webhooks, serving

SPACE = "shop"
RESOURCES = [adapter.resource for adapter in ADAPTERS]


@pytest.fixture
async def admin(tmp_path: Path) -> AsyncIterator[Client]:
    async with ApiServer() as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        async with await Client.connect(str(kubeconfig)) as client:
            metadata = {"name": SPACE, "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}
            await client.create(NAMESPACES, {"metadata": metadata})
            await clone_set_crd.create(client)
            yield client


@pytest.fixture(params=RESOURCES, ids=lambda each: each.plural)
def resource(request: pytest.FixtureRequest) -> Resource:
    found: Resource = request.param
    return found


def suspended(resource: Resource) -> dict[str, Any]:
    """A suspended workload whose version is processed, with the label `ignored-suspend`."""
    own = {labels.DEFENSE_STATUS: labels.PROCESSED, labels.SUSPEND: "1", labels.IGNORED_SUSPEND: "true"}
    more = {"serviceName": "web"} if resource.kind == "StatefulSet" else {}
    return workloads.manifest(resource.kind, "web", "nginx:1", labels={labels.VERSION: "0" * 32, **own}, **more)


def image(number: int) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": f"nginx:{number}"}]}}}}


async def test_one_of_many_concurrent_repairs_passes(admin: Client, tmp_path: Path, resource: Resource) -> None:
    await admin.create(resource, suspended(resource), SPACE)
    async with serving(tmp_path) as served:
        await install_webhooks(admin, served.url(""))

        async def repair(number: int) -> str:
            """The image of the stored workload, or the reason of the denial."""
            try:
                answer = await admin.patch(resource, image(number), "web", SPACE)
            except ForbiddenError as error:
                return error.reason
            found: str = answer["spec"]["template"]["spec"]["containers"][0]["image"]
            return found

        outcomes = await asyncio.gather(*map(repair, range(2, 12)))

        (passed,) = [each for each in outcomes if each.startswith("nginx:")]
        assert [each for each in outcomes if each != passed] == [f"{resource.kind.lower()} web is suspended"] * 9
        stored = await admin.get(resource, "web", SPACE)
        assert stored["spec"]["template"]["spec"]["containers"][0]["image"] == passed
        assert labels.DEFENSE_STATUS not in stored["metadata"]["labels"]


async def test_workloads_of_every_kind_get_a_version(admin: Client, tmp_path: Path, resource: Resource) -> None:
    async with serving(tmp_path) as served:
        await install_webhooks(admin, served.url(""))
        obj = suspended(resource)
        obj["metadata"]["labels"] = {"app": "web"}
        created = await admin.create(resource, obj, SPACE)
        version = created["metadata"]["labels"][labels.VERSION]
        assert created["spec"]["template"]["metadata"]["labels"][labels.VERSION] == version != ""
        released = await admin.patch(resource, image(2), "web", SPACE)
        assert released["metadata"]["labels"][labels.VERSION] != version
