"""The EndpointSlice controller: writes one EndpointSlice for each Service with a selector."""

import asyncio

import msgspec

from kube_base.access.queue import WorkQueue
from kube_base.resources import ENDPOINT_SLICES, SERVICES
from kube_sandbox.cluster import ownership, selectors
from kube_sandbox.cluster.caches import NAMESPACE, Caches
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import LabelSelector, Meta, Object, Pod
from kube_sandbox.cluster.ownership import OWNER
from kube_sandbox.cluster.work import Key, work

_SERVICE_NAME = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_MAX_ENDPOINTS = 1000  # the API's limit for one slice


class ServicePort(msgspec.Struct, frozen=True, rename="camel"):
    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: int | str | None = None


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False


class Service(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: ServiceSpec = ServiceSpec()


class Slice(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta
    endpoints: tuple[Object, ...] | None = ()
    ports: tuple[Object, ...] | None = ()


def endpoints(pods: list[Pod], spec: ServiceSpec) -> list[Object]:
    """The endpoints of the pods that have an address, sorted by the name of the pod."""
    chosen = [pod for pod in pods if pod.status.pod_ip and not pod.ended]
    return [
        {
            "addresses": [pod.status.pod_ip],
            "conditions": _conditions(pod, spec),
            "nodeName": pod.spec.node_name,
            "targetRef": {
                "kind": "Pod",
                "name": pod.metadata.name,
                "namespace": pod.metadata.namespace,
                "uid": pod.metadata.uid,
            },
        }
        for pod in sorted(chosen, key=lambda pod: pod.metadata.name)[:_MAX_ENDPOINTS]
    ]


def ports(pods: list[Pod], spec: ServiceSpec) -> list[Object]:
    """The ports of the endpoints. A named target port is resolved in the pods; if no pod has it, it is left out."""
    by_name = {
        port.name: port.container_port for pod in pods for container in pod.spec.containers for port in container.ports
    }
    found = []
    for port in spec.ports:
        target = port.target_port or port.port
        number = by_name.get(target) if isinstance(target, str) else target
        if number is not None:
            found.append({"name": port.name, "port": number, "protocol": port.protocol})
    return found


def _conditions(pod: Pod, spec: ServiceSpec) -> Object:
    leaving, serving = pod.metadata.deletion_timestamp is not None, pod.ready_since is not None
    ready = (serving and not leaving) or spec.publish_not_ready_addresses
    return {"ready": ready, "serving": serving, "terminating": leaving}


class EndpointSlices:
    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._pods = caches.pods
        self._services = Informer(caches.client, SERVICES, Service)
        self._slices = Informer(caches.client, ENDPOINT_SLICES, Slice, label_selector=f"{_MANAGED_BY}={_MANAGER}")
        self._services.add_index(NAMESPACE, lambda service: [service.metadata.namespace])
        self._slices.add_index(OWNER, ownership.index_key)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._services.add_handler(self._service_changed)
        self._slices.add_handler(self._slice_changed)
        caches.pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._services.run())
            group.create_task(self._slices.run())
            await self._services.wait_synced()
            await self._slices.wait_synced()
            group.create_task(work(self._queue, self._sync, workers=4))

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        if new is not None:
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _slice_changed(self, old: Slice | None, new: Slice | None) -> None:
        owner = old.metadata.controller if old and new is None else None
        if old is not None and owner is not None:
            self._queue.add(Key(old.metadata.namespace, owner.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            for service in self._services.by_index(NAMESPACE, pod.metadata.namespace):
                if selectors.matches(LabelSelector(service.spec.selector), pod.metadata.labels):
                    self._queue.add(Key(service.metadata.namespace, service.metadata.name))

    async def _sync(self, key: Key) -> None:
        service = self._services.get(*key)
        if service is None or not service.spec.selector or service.metadata.deletion_timestamp is not None:
            return
        selector = LabelSelector(service.spec.selector)
        namespaced = self._pods.by_index(NAMESPACE, key.namespace)
        pods = [pod for pod in namespaced if selectors.matches(selector, pod.metadata.labels)]
        content: Object = {"endpoints": endpoints(pods, service.spec), "ports": ports(pods, service.spec)}
        present = next(iter(self._slices.by_index(OWNER, service.metadata.uid)), None)
        if present is None:
            body = {
                "apiVersion": ENDPOINT_SLICES.api_version,
                "kind": ENDPOINT_SLICES.kind,
                "metadata": {
                    "generateName": f"{service.metadata.name}-",
                    "labels": {**service.metadata.labels, _SERVICE_NAME: key.name, _MANAGED_BY: _MANAGER},
                    "ownerReferences": [ownership.controller_reference(SERVICES, service.metadata)],
                },
                "addressType": "IPv4",
                **content,
            }
            await self._slices.create(body, key.namespace)
        elif content != {"endpoints": list(present.endpoints or ()), "ports": list(present.ports or ())}:
            patch = {"metadata": {"resourceVersion": present.metadata.resource_version}, **content}
            await self._slices.patch(patch, present.metadata.name, key.namespace)
