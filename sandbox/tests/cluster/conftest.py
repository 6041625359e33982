"""Fixtures: one sandbox for each test."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_base.access.client import Client
from kube_base.resources import NAMESPACES, NODES
from kube_sandbox.apiserver.server import ApiServer
from support.cluster import SETTINGS, SPACE, Cluster


@pytest.fixture
async def refused() -> set[str]:
    """The requests that the API server refuses: method and last part of the path, for example `POST pods`."""
    return set()


@pytest.fixture
def tls() -> bool:
    """Whether the API server has TLS. Each client of the simulation would need its time for handshakes."""
    return False


@pytest.fixture
async def api_only(tmp_path: Path, refused: set[str], tls: bool) -> AsyncIterator[Cluster]:
    """An API server with an empty namespace, without nodes and controllers."""

    @web.middleware
    async def refuse(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        if f"{request.method} {request.path.rpartition('/')[2]}" in refused:
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "over quota"}
            return web.json_response(status, status=403)
        return await handler(request)  # type: ignore[no-any-return]

    async with ApiServer(middlewares=[refuse], tls=tls) as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        async with await Client.connect(str(kubeconfig)) as client:
            await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
            yield Cluster(str(kubeconfig), client)


@pytest.fixture
async def cluster(api_only: Cluster) -> AsyncIterator[Cluster]:
    """A cluster with all nodes and controllers."""
    async with api_only.simulation():
        await api_only.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield api_only


@pytest.fixture
async def fast_pod_gc(api_only: Cluster) -> AsyncIterator[Cluster]:
    """As `cluster`, but the pods of a deleted node are removed soon."""
    async with api_only.simulation(dataclasses.replace(SETTINGS, pod_gc=0.2)):
        await api_only.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield api_only


@pytest.fixture
async def slow_eviction(api_only: Cluster) -> AsyncIterator[Cluster]:
    """As `cluster`, but pods stay on nodes that are not ready."""
    async with api_only.simulation(dataclasses.replace(SETTINGS, eviction=300)):
        await api_only.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield api_only
