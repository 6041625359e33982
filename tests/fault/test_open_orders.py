"""The order of a release that is deleted, or is not followed any more, is closed on the AlterShield server."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from altershield.api import labels, names
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES
from kube_sandbox.altershield_server.script import Script, StageScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from reconciler.manager import Manager
from reconciler.releases.writes import reports as reporting
from reconciler.server.server_settings import Settings
from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.releases import condition, release

TOKEN = "altershield-operator"
V1, V2 = version("v1"), version("v2")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path, garbage=True) as cluster:
        await cluster.go_to("shop")
        yield cluster


@pytest.fixture
async def server() -> AsyncIterator[AlterShieldServer]:
    """A server whose checks do not end, so that releases stay under way."""
    async with AlterShieldServer(token=TOKEN, script=Script(pre=StageScript(verdict="never"))) as server:
        yield server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "RETRY_SECONDS", 1.0)
    monkeypatch.setattr("reconciler.orders.order_reconciler.RETRY_SECONDS", 1.0)


def following(
    cluster: Cluster, directory: Path, server: AlterShieldServer, identity: str = "one"
) -> contextlib.AbstractAsyncContextManager[Manager]:
    (directory / "token").write_text(TOKEN)
    settings = Settings(url=server.url, token_file=directory / "token")
    return cluster.reconciler(server=settings, check_timeout=600, identity=identity)


async def records(cluster: Cluster) -> list[str]:
    """The orders that are recorded as open."""
    found = (await cluster.admin.list(CONFIG_MAPS, names.SYSTEM_NAMESPACE, label_selector=labels.ORDER, as_=dict)).items
    return [each["data"]["order"] for each in found]


def closings(server: AlterShieldServer) -> list[list[str]]:
    """How often and how each order was closed, the oldest first."""
    return [[str(each["finishState"]) for each in order.closings] for order in server.orders.values()]


async def reported(cluster: Cluster) -> None:
    async def met() -> bool:
        found = await cluster.get(CHANGE_WORKLOADS, release(V1))
        return found is not None and condition(found, "Reported") == ("True", "OrderCreated")

    await cluster.until(met, "the order")


async def until_closed(cluster: Cluster, server: AlterShieldServer) -> None:
    async def met() -> bool:
        return not await records(cluster)

    await cluster.until(met, "the record to be deleted")
    assert {tuple(set(each)) for each in closings(server)} == {("CANCEL",)}


async def delete_the_workload(cluster: Cluster) -> None:
    await cluster.admin.delete(DEPLOYMENTS, "sleep", cluster.namespace)

    async def gone() -> bool:
        return not await cluster.all(CHANGE_WORKLOADS)

    await cluster.until(gone, "the ChangeWorkload to be deleted, although its order is open")


async def stop_governing(cluster: Cluster) -> None:
    await cluster.admin.patch(NAMESPACES, {"metadata": {"labels": {labels.GOVERNED: None}}}, cluster.namespace)


ENDS = [delete_the_workload, stop_governing]


@pytest.mark.parametrize("end", ENDS)
async def test_order_is_cancelled(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer, end: Callable[[Cluster], Awaitable[None]]
) -> None:
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)
        await reported(cluster)
        assert await records(cluster) == [order for _, order in server.orders]
        await end(cluster)
        await until_closed(cluster, server)


@pytest.mark.parametrize("end", ENDS)
async def test_order_is_cancelled_after_a_restart_in_between(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer, end: Callable[[Cluster], Awaitable[None]]
) -> None:
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)
        await reported(cluster)
    await end(cluster)
    async with following(cluster, tmp_path, server, "two"):
        await until_closed(cluster, server)


async def test_order_is_cancelled_when_an_unreachable_server_is_back(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer
) -> None:
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)
        await reported(cluster)
        await server.close_listener()
        await delete_the_workload(cluster)
        assert len(await records(cluster)) == 1
        await server.listen()
        await until_closed(cluster, server)


async def test_order_of_a_release_that_was_released_again_before_a_reconciler_saw_its_end_is_cancelled(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer
) -> None:
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)
        await reported(cluster)
    await cluster.release(V2, image="busybox:2")
    await cluster.release(V1)
    async with following(cluster, tmp_path, server, "two"):

        async def met() -> bool:
            return closings(server) == [["CANCEL"], []] and len(await records(cluster)) == 1

        await cluster.until(met, "the first order to be cancelled, and the second one to be open")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_order_is_cancelled_if_the_reconciler_is_killed_after_it_wrote_or_deleted_the_record(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer, method: str
) -> None:
    def of_record(request: web.Request) -> bool:
        return request.method == method and "configmaps" in request.path.split("/")

    killer = Killer(1, of_record)
    cluster.set_fault(killer)
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)
        if method == "DELETE":
            await reported(cluster)
            await delete_the_workload(cluster)
        await killer.struck.wait()
    cluster.set_fault(None)
    async with following(cluster, tmp_path, server, "two"):
        if method == "POST":
            await reported(cluster)
            await delete_the_workload(cluster)
        await until_closed(cluster, server)


async def test_record_of_an_order_that_was_closed_with_its_release_is_deleted(
    cluster: Cluster, tmp_path: Path, server: AlterShieldServer
) -> None:
    server.script = Script()
    async with following(cluster, tmp_path, server):
        await cluster.release(V1)

        async def met() -> bool:
            return closings(server) == [["SUCCESS"]] and not await records(cluster)

        await cluster.until(met, "the order to be closed")


async def test_follower_knows_which_orders_the_leader_has_closed(
    cluster: Cluster, server: AlterShieldServer, tmp_path: Path
) -> None:
    """Otherwise it would close them again when it leads."""
    async with following(cluster, tmp_path, server), following(cluster, tmp_path, server, "two") as follower:
        await cluster.release(V1)

        async def is_known() -> bool:
            return len(follower.caches.orders) == 1

        async def is_forgotten() -> bool:
            return len(follower.caches.orders) == 0

        await cluster.until(is_known, "the follower to know the order")
        await cluster.admin.delete(DEPLOYMENTS, "sleep", "shop")
        await cluster.until(is_forgotten, "the follower to forget the order")
    assert closings(server) == [["CANCEL"]]
