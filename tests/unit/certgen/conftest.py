"""Fixtures for tests of the reconciler on a Kubernetes API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.resources import NAMESPACES
from kube_sandbox.apiserver.server import ApiServer

from .api import NAMESPACE, Api, installed


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """An API server with the webhook configurations of an installation, which have no bundle yet."""
    async with ApiServer(tls=False) as server:  # the tests open a thousand connections
        api = Api(server, tmp_path)
        async with await api.connect() as client:
            await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            for resource, obj in zip(KINDS, installed(), strict=True):
                await client.create(resource, obj)
        yield api


@pytest.fixture
async def client(api: Api) -> AsyncIterator[Client]:
    async with await api.connect() as client:
        yield client
