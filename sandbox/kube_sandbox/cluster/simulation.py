"""Runs the simulated nodes, kubelets, scheduler and controllers on a Kubernetes API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from kube_sandbox.client.client import Client
from kube_sandbox.client.events import EventRecorder
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.clone_sets import crd
from kube_sandbox.cluster.clone_sets.controller import CloneSets
from kube_sandbox.cluster.daemon_sets.controller import DaemonSets
from kube_sandbox.cluster.deployments.controller import Deployments
from kube_sandbox.cluster.endpoint_slices import EndpointSlices
from kube_sandbox.cluster.garbage.collector import GarbageCollector
from kube_sandbox.cluster.jobs.controller import Jobs
from kube_sandbox.cluster.kubelet.kubelets import Kubelets
from kube_sandbox.cluster.namespaces import Namespaces
from kube_sandbox.cluster.nodes.lifecycle import NodeLifecycle
from kube_sandbox.cluster.nodes.registration import Nodes
from kube_sandbox.cluster.replica_sets.controller import ReplicaSets
from kube_sandbox.cluster.scheduler import scheduler
from kube_sandbox.cluster.scheduler.scheduler import Scheduler
from kube_sandbox.cluster.service_accounts import ServiceAccounts
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.stateful_sets.controller import StatefulSets


class _Part(Protocol):
    async def run(self) -> None: ...


async def run(client: Client, settings: SimulationSettings) -> None:
    """Simulate until cancelled. `client` needs the rights of an administrator. All state is in the API: after a
    restart, the simulation continues from there."""
    if settings.define_clone_sets:
        await crd.create(client)
    caches = Caches(client)
    recorders: list[EventRecorder] = []

    def recorder(component: str) -> EventRecorder:
        recorders.append(EventRecorder(client, component))
        return recorders[-1]

    parts: list[_Part] = [
        Nodes(caches, settings),
        Scheduler(caches, settings, recorder(scheduler.NAME)),
        Kubelets(caches, settings, recorder("kubelet")),
    ]
    if "nodelifecycle" in settings.controllers:
        parts.append(NodeLifecycle(caches, settings, recorder("node-controller")))
    if "deployments" in settings.controllers:
        parts.append(Deployments(caches, recorder("deployment-controller")))
    if "replicasets" in settings.controllers:
        parts.append(ReplicaSets(caches, recorder("replicaset-controller")))
    if "statefulsets" in settings.controllers:
        parts.append(StatefulSets(caches, recorder("statefulset-controller")))
    if "daemonsets" in settings.controllers:
        parts.append(DaemonSets(caches, recorder("daemonset-controller")))
    if "clonesets" in settings.controllers:
        parts.append(CloneSets(caches, recorder("cloneset-controller")))
    if "jobs" in settings.controllers:
        parts.append(Jobs(caches, settings, recorder("job-controller")))
    if "namespaces" in settings.controllers:
        parts.append(Namespaces(caches))
    if "serviceaccounts" in settings.controllers:
        parts.append(ServiceAccounts(caches))
    if "endpointslices" in settings.controllers:
        parts.append(EndpointSlices(caches))
    if "garbage" in settings.controllers:
        parts.append(GarbageCollector(caches))
    async with asyncio.TaskGroup() as group:
        group.create_task(caches.run())
        await caches.wait_synced()
        for part in [*parts, *recorders]:
            group.create_task(part.run())


@contextlib.asynccontextmanager
async def simulated(kubeconfig: str | Path, settings: SimulationSettings | None = None) -> AsyncIterator[None]:
    """Run a simulation on the API of `kubeconfig`, that of an administrator, while the `async with` block runs. An
    error of the simulation is raised at the end of the block."""
    async with await Client.connect(str(kubeconfig)) as client:
        simulation = asyncio.create_task(run(client, settings or SimulationSettings()))
        try:
            yield
        finally:
            simulation.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await simulation
