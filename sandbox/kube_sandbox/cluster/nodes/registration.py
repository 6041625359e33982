"""The simulated nodes: their Node objects, and their heartbeats, without which a real node controller taints them."""

import zlib

from kube_base import resources
from kube_base.access.client import PatchType
from kube_base.access.errors import AlreadyExistsError, NotFoundError
from kube_base.access.queue import WorkQueue
from kube_base.times import rfc3339
from kube_sandbox.cluster import users
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.kinds import Node, Object
from kube_sandbox.cluster.nodes import health
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.work import work

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_VERSION = "v1.36.2"


def names(settings: SimulationSettings) -> list[str]:
    return [f"sandbox-{number}" for number in range(1, settings.nodes + 1)]


def internal_ip(name: str) -> str:
    """The address of a node. Nothing listens there."""
    number = name.rpartition("-")[2]
    place = int(number) if number.isascii() and number.isdigit() else zlib.crc32(name.encode())
    return f"192.168.{place // 250 % 250}.{place % 250 + 1}"


class Nodes:
    """The nodes of the simulation, and Nodes that a user created with the annotation `health.KUBELET`."""

    def __init__(self, caches: Caches, settings: SimulationSettings) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._nodes = caches.nodes
        self._settings = settings
        self._own = frozenset(names(settings))
        self._queue: WorkQueue[str] = WorkQueue()
        caches.nodes.add_handler(self._changed)

    async def run(self) -> None:
        """Register the nodes of the simulation and renew all heartbeats, until cancelled."""
        for name in self._own:
            self._queue.add(name)
        await work(self._queue, self._report, workers=4)

    def _changed(self, old: Node | None, new: Node | None) -> None:
        """Queue a node whose state changed. A deleted node of the simulation is created again at its next heartbeat."""
        if new is None or (old is not None and health.kubelet(old) == health.kubelet(new)):
            return
        if new.metadata.name in self._own or health.KUBELET in new.metadata.annotations:
            self._queue.add(new.metadata.name)

    async def _report(self, name: str) -> None:
        users.become(users.kubelet(name))
        node = self._nodes.get("", name)
        if node is None:
            if name not in self._own:
                return
            node = await self._register(name)
        match health.kubelet(node):
            case health.DOWN:
                return
            case health.NOT_READY:
                if conditions := health.broken_conditions(node, self._clock()):
                    await self._patch_status(name, {"conditions": conditions})
            case _ if not health.is_ready(node):
                await self._patch_status(name, self._object(name)["status"])
        await self._renew(name)
        self._queue.add_after(name, self._settings.node_heartbeat)

    async def _register(self, name: str) -> Node:
        try:
            return await self._nodes.create(self._object(name))
        except AlreadyExistsError:
            return await self._nodes.fetch(name)

    async def _patch_status(self, name: str, status: Object) -> None:
        await self._nodes.patch({"status": status}, name, subresource="status", type_=PatchType.STRATEGIC)

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
