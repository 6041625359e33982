"""The API of the simulated cluster."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import CHANGE_PODS
from altershield.workloads import BY_KIND
from altershield.workloads.pods import Pod
from altershield.workloads.pods import read as read_pod
from bench.harness.servers import write_kubeconfig
from bench.harness.waiting import paced, until
from bench.simulated.api import Api
from bench.simulated.gatekeeper import labeled
from bench.simulated.shape import Shape, limits
from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError, NotFoundError
from kube_base.access.informer import Informer
from kube_base.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, LEASES, PODS, REPLICA_SETS
from reconciler.manager import Manager
from reconciler.options import Options

SHAPE = Shape(pods=30, deployments=6, largest=10, revisions=2, fat=0, namespaces=2, nodes=3)


@pytest.fixture
def api() -> Api:
    return Api(SHAPE, lead=False)


@pytest.fixture
async def client(api: Api, tmp_path: Path) -> AsyncIterator[Client]:
    async with (
        api.serving() as url,
        await Client.connect(str(write_kubeconfig(tmp_path / "kubeconfig", url))) as client,
    ):
        yield client


async def test_lists_have_all_objects_and_those_of_a_namespace_or_a_workload(client: Client) -> None:
    deployments: list[dict[str, Any]] = (await client.list(DEPLOYMENTS, limit=4)).items
    assert len(deployments) == 6
    assert len((await client.list(PODS)).items) == 30
    namespace, name = deployments[0]["metadata"]["namespace"], deployments[0]["metadata"]["name"]
    assert len((await client.list(DEPLOYMENTS, namespace)).items) == 3
    assert len((await client.list(PODS, namespace, label_selector=f"app={name}")).items) == SHAPE.largest
    assert len((await client.list(REPLICA_SETS, namespace, label_selector=f"app={name}")).items) == 2
    pages = [len(page.items) async for page in client.pages(PODS, namespace, label_selector=f"app={name}", limit=4)]
    assert pages == [4, 4, 2]


async def test_informer_sees_what_is_stored_and_lists_again_after_versions_expired(api: Api, client: Client) -> None:
    informer = Informer(client, PODS, Pod, read=read_pod)
    following = asyncio.create_task(informer.run())
    await informer.wait_synced()
    assert len(informer.all()) == 30
    pod: dict[str, Any] = (await client.list(PODS)).items[0]

    api.store("pods", pod, "DELETED")
    await until(lambda: len(informer.all()) == 29, "the event")
    listed = api.listed
    api.forget()

    await until(lambda: api.listed > listed, "another list")
    assert len(informer.all()) == 29
    following.cancel()


async def test_a_written_object_replaces_the_made_one(api: Api, client: Client) -> None:
    made: dict[str, Any] = (await client.list(CHANGE_PODS)).items[0]
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]

    await client.patch(CHANGE_PODS, {"metadata": {"labels": {"a": "b"}}}, name, namespace)
    found: dict[str, Any] = await client.get(CHANGE_PODS, name, namespace)
    assert found["metadata"]["labels"]["a"] == "b"
    with pytest.raises(AlreadyExistsError):
        await client.create(CHANGE_PODS, {"metadata": {"name": name}}, namespace)
    await client.delete(CHANGE_PODS, name, namespace)
    with pytest.raises(NotFoundError):
        await client.get(CHANGE_PODS, name, namespace)
    assert api.take().by_kind["patch changepods"] == 1


async def test_lease_has_another_holder_until_a_reconciler_may_lead(api: Api, client: Client) -> None:
    async def holder() -> str:
        found: dict[str, Any] = await client.get(LEASES, "lease", "system")
        return str(found["spec"].get("holderIdentity", ""))

    assert await holder() == "another"
    api.lead = True
    assert await holder() == ""


@pytest.mark.parametrize("scale", [0.0001, 0.004, 0.01])
def test_pods_of_a_shape_are_numbered_without_gaps(scale: float) -> None:
    shape = limits(scale)
    first = [shape.first_pod(number) for number in range(shape.deployments)]
    assert [shape.deployment_of(pod) for pod in first] == [(number, 0) for number in range(shape.deployments)]
    assert sum(shape.replicas(number) for number in range(shape.deployments)) == shape.pods


async def test_paced_numbers_come_at_their_times() -> None:
    loop = asyncio.get_running_loop()
    began, numbers = loop.time(), [3, 1, 2]
    assert [number async for number in paced(100, numbers)] == numbers
    assert loop.time() - began >= 0.02


async def test_reconciler_fills_its_caches_and_keeps_a_history(api: Api, client: Client) -> None:
    """Benchmarks are not part of the suite: a kind or a write that the API lacks would go unnoticed."""
    manager = Manager(client, Options(identity="bench", metrics_port=0))
    running = asyncio.create_task(manager.run(asyncio.Event()))
    await until(lambda: all(each.synced for each in manager.caches.required), "the caches")
    running.cancel()
    entry: dict[str, Any] = {"metadata": {"name": "checkout-frontend-00001-1", "namespace": "team-00"}}
    made: dict[str, Any] = await client.create(CONTROLLER_REVISIONS, entry, "team-00")
    assert made["metadata"]["uid"]


async def test_release_without_a_gatekeeper_has_the_labels_that_one_sets(api: Api) -> None:
    old = api.find("deployments", "team-00", "checkout-frontend-00001")
    assert old is not None
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/shop/web:1.2.4"
    before, after = (
        BY_KIND[DEPLOYMENTS.group_kind].read(json.dumps(each).encode()) for each in (old, await labeled(old, new))
    )
    assert before.processed
    assert not after.processed
    assert after.version == after.fingerprint != before.version
