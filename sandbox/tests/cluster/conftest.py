"""A sandbox of each test's own."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.client.client import Client
from kube_sandbox.client.resources import NAMESPACES, NODES
from support.world import SETTINGS, SPACE, World


@pytest.fixture
async def refused() -> set[str]:
    """Methods and last parts of paths, as `POST pods`, that the API refuses to the simulation."""
    return set()


@pytest.fixture
async def world(tmp_path: Path, refused: set[str]) -> AsyncIterator[World]:
    @web.middleware
    async def refuse(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        if f"{request.method} {request.path.rpartition('/')[2]}" in refused:
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "over quota"}
            return web.json_response(status, status=403)
        return await handler(request)  # type: ignore[no-any-return]

    async with ApiServer(middlewares=[refuse]) as api:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        async with await Client.connect(str(kubeconfig)) as client:
            await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
            yield World(str(kubeconfig), client)


@pytest.fixture
async def cluster(world: World) -> AsyncIterator[World]:
    """With everything simulated."""
    async with world.simulation():
        await world.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield world


@pytest.fixture
async def tidy(world: World) -> AsyncIterator[World]:
    """The same, but pods soon follow a node that is gone."""
    async with world.simulation(dataclasses.replace(SETTINGS, pod_gc=0.2)):
        await world.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield world


@pytest.fixture
async def patient(world: World) -> AsyncIterator[World]:
    """The same, but pods stay on nodes that are not ready."""
    async with world.simulation(dataclasses.replace(SETTINGS, eviction=300)):
        await world.until(NODES, lambda nodes: len(nodes) == 3, "")
        yield world
