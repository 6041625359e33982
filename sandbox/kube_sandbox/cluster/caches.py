"""The informers that the controllers share."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from kube_base import resources
from kube_base.access.client import Client
from kube_base.resources import CONTROLLER_REVISIONS, DAEMON_SETS, STATEFUL_SETS
from kube_sandbox.cluster.disruptions.kinds import Budget
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.jobs.kinds import Job
from kube_sandbox.cluster.kinds import Bare, Deployment, Node, Object, Pod, ReplicaSet
from kube_sandbox.cluster.ownership import OWNER, index_key
from kube_sandbox.cluster.workload_kinds import ControllerRevision, DaemonSet, StatefulSet

NAMESPACE = "namespace"
NODE = "node"


class Caches:
    """One informer for each kind that several controllers read."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self.client = client
        self.clock = clock
        self.deployments = Informer(client, resources.DEPLOYMENTS, Deployment)
        self.replica_sets = Informer(client, resources.REPLICA_SETS, ReplicaSet)
        self.stateful_sets = Informer(client, STATEFUL_SETS, StatefulSet)
        self.daemon_sets = Informer(client, DAEMON_SETS, DaemonSet)
        self.jobs = Informer(client, resources.JOBS, Job)
        self.revisions = Informer(client, CONTROLLER_REVISIONS, ControllerRevision)
        self.pods = Informer(client, resources.PODS, Pod)
        self.budgets = Informer(client, resources.DISRUPTION_BUDGETS, Budget)
        self.nodes = Informer(client, resources.NODES, Node)
        self.namespaces = Informer(client, resources.NAMESPACES, Bare)
        self.service_accounts = Informer(client, resources.SERVICE_ACCOUNTS, Bare)
        self.config_maps = Informer(client, resources.CONFIG_MAPS, Bare)
        self.informers: tuple[Informer[Any], ...] = (
            self.deployments,
            self.replica_sets,
            self.stateful_sets,
            self.daemon_sets,
            self.jobs,
            self.revisions,
            self.pods,
            self.budgets,
            self.nodes,
            self.namespaces,
            self.service_accounts,
            self.config_maps,
        )
        self.replica_sets.add_index(OWNER, index_key)
        self.revisions.add_index(OWNER, index_key)
        self.pods.add_index(OWNER, index_key)
        self.pods.add_index(NODE, lambda pod: [pod.spec.node_name] if pod.spec.node_name else [])
        self.pods.add_index(NAMESPACE, lambda pod: [pod.metadata.namespace])
        self.budgets.add_index(NAMESPACE, lambda budget: [budget.metadata.namespace])

    async def wait_synced(self) -> None:
        for informer in self.informers:
            await informer.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run())


def status_patch(new: msgspec.Struct, old: msgspec.Struct) -> Object:
    """The changed fields, as the `status` of a merge patch. Null removes a field that has its default again."""
    wanted, present = msgspec.to_builtins(new), msgspec.to_builtins(old)
    keys = wanted.keys() | present.keys()
    return {key: wanted.get(key) for key in keys if wanted.get(key) != present.get(key)}
