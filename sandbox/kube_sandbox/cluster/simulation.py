"""Runs the simulated nodes, kubelets, scheduler and controllers on a Kubernetes API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from kube_base.access.client import Client
from kube_base.access.events import EventRecorder
from kube_base.access.transport import Send
from kube_sandbox.cluster import users
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.clone_sets import crd
from kube_sandbox.cluster.clone_sets.controller import CloneSets
from kube_sandbox.cluster.daemon_sets.controller import DaemonSets
from kube_sandbox.cluster.deployments.controller import Deployments
from kube_sandbox.cluster.disruptions.controller import Disruptions, StaleConditions
from kube_sandbox.cluster.endpoint_slices import EndpointSlices
from kube_sandbox.cluster.garbage.collector import GarbageCollector
from kube_sandbox.cluster.jobs.controller import Jobs
from kube_sandbox.cluster.kubelet.kubelets import Kubelets
from kube_sandbox.cluster.namespaces.controller import Namespaces
from kube_sandbox.cluster.nodes.lifecycle import NodeLifecycle
from kube_sandbox.cluster.nodes.registration import Nodes
from kube_sandbox.cluster.replica_sets.controller import ReplicaSets
from kube_sandbox.cluster.scheduler import scheduler
from kube_sandbox.cluster.scheduler.scheduler import Scheduler
from kube_sandbox.cluster.service_accounts import ServiceAccounts
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.stateful_sets.controller import StatefulSets
from kube_sandbox.cluster.users import Impersonated


class _Part(Protocol):
    async def run(self) -> None: ...


_Recorder = Callable[[str], EventRecorder]
"""Makes the recorder of a component."""

_CONTROLLERS: dict[str, Callable[[Caches, SimulationSettings, _Recorder], list[_Part]]] = {
    "clonesets": lambda caches, _, recorder: [CloneSets(caches, recorder("cloneset-controller"))],
    "daemonsets": lambda caches, _, recorder: [DaemonSets(caches, recorder("daemonset-controller"))],
    "deployments": lambda caches, _, recorder: [Deployments(caches, recorder("deployment-controller"))],
    "disruptions": lambda caches, _, recorder: [
        Disruptions(caches, recorder("controllermanager")),
        StaleConditions(caches),
    ],
    "endpointslices": lambda caches, *_: [EndpointSlices(caches)],
    "garbage": lambda caches, *_: [GarbageCollector(caches)],
    "jobs": lambda caches, settings, recorder: [Jobs(caches, settings, recorder("job-controller"))],
    "namespaces": lambda caches, *_: [Namespaces(caches)],
    "nodelifecycle": lambda caches, settings, recorder: [NodeLifecycle(caches, settings, recorder("node-controller"))],
    "replicasets": lambda caches, _, recorder: [ReplicaSets(caches, recorder("replicaset-controller"))],
    "serviceaccounts": lambda caches, *_: [ServiceAccounts(caches)],
    "statefulsets": lambda caches, _, recorder: [StatefulSets(caches, recorder("statefulset-controller"))],
}
"""The parts of each controller in `ALL_CONTROLLERS`."""


async def run(client: Client, settings: SimulationSettings) -> None:
    """Simulate until cancelled. `client` needs the rights of an administrator. All state is in the API: after a
    restart, the simulation continues from there."""
    client.add_headers(users.headers)
    if settings.define_clone_sets:
        await crd.create(client)
    await users.allow(client, settings)
    caches = Caches(client)
    tasks: list[tuple[_Part, Impersonated | None]] = []

    def recorder(component: str) -> EventRecorder:
        """A recorder for the next part. The user of that part writes its Events."""
        recorders.append(EventRecorder(client, component))
        return recorders[-1]

    recorders: list[EventRecorder] = []

    def add(user: Impersonated | None, *parts: _Part) -> None:
        """Run the parts and their recorders as `user`; None is the administrator."""
        tasks.extend((part, user) for part in (*parts, *recorders))
        recorders.clear()

    add(None, Nodes(caches, settings))
    add(users.SCHEDULER, Scheduler(caches, settings, recorder(scheduler.NAME)))
    add(None, Kubelets(caches, settings, recorder("kubelet")))
    for name in sorted(settings.controllers):
        add(users.controller(users.CONTROLLERS[name], settings), *_CONTROLLERS[name](caches, settings, recorder))
    async with asyncio.TaskGroup() as group:
        group.create_task(caches.run())
        await caches.wait_synced()
        for part, user in tasks:
            group.create_task(part.run(), context=users.context(user))


@contextlib.asynccontextmanager
async def simulated(
    kubeconfig: str | Path, settings: SimulationSettings | None = None, send: Send | None = None
) -> AsyncIterator[None]:
    """Run a simulation on the API of `kubeconfig`, that of an administrator, while the `async with` block runs. `send`
    sends the requests to an API server in this process. An error of the simulation is raised at the end of the
    block."""
    async with await Client.connect(str(kubeconfig), user_agent="kube-sandbox", send=send) as client:
        simulation = asyncio.create_task(run(client, settings or SimulationSettings()))
        try:
            yield
        finally:
            simulation.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await simulation
