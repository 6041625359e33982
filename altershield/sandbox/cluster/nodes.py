"""The simulated nodes: their Node objects, and heartbeats so that a real node controller leaves them alone."""

import asyncio
import logging

from altershield.api import resources
from altershield.api.meta import rfc3339
from altershield.kube.client import PatchType
from altershield.kube.errors import AlreadyExistsError, KubernetesError, NotFoundError
from altershield.sandbox.cluster.caches import Caches
from altershield.sandbox.cluster.settings import SimulationSettings
from altershield.sandbox.cluster.views import Node, Object, find

logger = logging.getLogger(__name__)

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_VERSION = "v1.36.2"
_NOT_READY = "node.kubernetes.io/not-ready"
_REST = 1.0  # seconds until a node tries again to register


def names(settings: SimulationSettings) -> list[str]:
    return [f"sandbox-{number}" for number in range(1, settings.nodes + 1)]


def internal_ip(name: str) -> str:
    """A node's address. Nothing listens there."""
    number = int(name.rpartition("-")[2])
    return f"192.168.{number // 250}.{number % 250 + 1}"


class Nodes:
    def __init__(self, caches: Caches, settings: SimulationSettings) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._nodes = caches.nodes
        self._settings = settings

    async def run(self) -> None:
        """Register every node and keep it ready, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name in names(self._settings):
                group.create_task(self._live(name))

    async def _live(self, name: str) -> None:
        while True:
            pause = self._settings.node_heartbeat
            try:
                await self._keep_ready(name)
                await self._renew(name)
            except KubernetesError as error:
                logger.warning("a simulated node cannot report", extra={"node": name, "error": str(error)})
                pause = min(pause, _REST)
            await asyncio.sleep(pause)

    async def _keep_ready(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None:
            try:
                node = await self._client.create(resources.NODES, self._object(name), as_=Node)
            except AlreadyExistsError:
                node = await self._client.get(resources.NODES, name, as_=Node)
        ready = find(node.status.conditions, "Ready")
        if ready is None or ready.status != "True":
            node = await self._client.patch(
                resources.NODES,
                {"status": self._object(name)["status"]},
                name,
                subresource="status",
                type_=PatchType.STRATEGIC,
                as_=Node,
            )
        # The API server taints new nodes; the controller that takes the taint off may not be there.
        if any(taint.key == _NOT_READY for taint in node.spec.taints):
            kept = [taint for taint in node.spec.taints if taint.key != _NOT_READY]
            patch = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": kept},
            }
            await self._client.patch(resources.NODES, patch, name)

    async def _renew(self, name: str) -> None:
        now = f"{rfc3339(self._clock())[:-1]}.000000Z"
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now}
        try:
            await self._client.patch(resources.LEASES, {"spec": spec}, name, _LEASE_NAMESPACE)
        except NotFoundError:
            lease = {
                "apiVersion": resources.LEASES.api_version,
                "kind": resources.LEASES.kind,
                "metadata": {"name": name, "namespace": _LEASE_NAMESPACE},
                "spec": spec,
            }
            await self._client.create(resources.LEASES, lease, _LEASE_NAMESPACE)

    def _object(self, name: str) -> Object:
        now = rfc3339(self._clock())
        capacity = {
            "cpu": self._settings.node_cpu,
            "memory": self._settings.node_memory,
            "pods": str(self._settings.node_pods),
        }
        conditions = [
            _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "memory available", now),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "disk space available", now),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID", "processes available", now),
            _condition("Ready", "True", "KubeletReady", "the simulated kubelet is ready", now),
        ]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/region": "sandbox",
                    "topology.kubernetes.io/zone": name,
                },
            },
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": conditions,
                "addresses": [
                    {"type": "InternalIP", "address": internal_ip(name)},
                    {"type": "Hostname", "address": name},
                ],
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": name,
                    "containerRuntimeVersion": "containerd://2.0.0",
                    "kernelVersion": "6.1.0",
                    "kubeProxyVersion": "",
                    "kubeletVersion": _VERSION,
                    "machineID": name,
                    "operatingSystem": "linux",
                    "osImage": "simulated",
                    "systemUUID": name,
                },
            },
        }


def _condition(type_: str, status: str, reason: str, message: str, now: str) -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
