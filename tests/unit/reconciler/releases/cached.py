"""Caches with releases that tests put into them."""

import contextlib
from collections.abc import AsyncIterator

import msgspec

from altershield.api import labels, names
from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.namespace import Namespace
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from tests.support.workloads import GROUP_KINDS
from tests.unit.altershield.releases.builders import V1, release, workload


@contextlib.asynccontextmanager
async def empty_caches() -> AsyncIterator[Caches]:
    """Caches of the empty governed namespace `default`."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        governed = {"name": "default", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}, "resourceVersion": "1"}
        caches.namespaces.observe(msgspec.convert({"metadata": governed}, Namespace))
        yield caches


def put_release(
    caches: Caches, name: str, status: ChangeWorkloadStatus, present: str = V1, kind: str = "Deployment"
) -> None:
    """Put a workload at the version `present`, and the ChangeWorkload of its version V1."""
    caches.workloads[GROUP_KINDS[kind]].observe(workload(present, kind=kind, name=name))
    caches.releases.observe(projection.read(msgspec.json.encode(release(V1, status, kind=kind, name=name))))
