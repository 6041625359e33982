"""Writes the objects of the reconciler, except Leases, Events and Jobs. Updates and deletions are guarded by uid or
resourceVersion. Each write is counted. If a cache keeps the object, the answer is put into it at once."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.json_patch import Operation
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from kube_base.access.bodies import decode
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import (
    ConflictError,
    InvalidError,
    KubernetesError,
    NotFoundError,
    ServerError,
    UnreachableError,
)
from kube_base.access.informer import Informer
from kube_base.access.objects import Metadata, T
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import PODS, Resource
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.machinery.metrics import Metrics

_AT_ONCE = 16  # writes to one namespace; the client has 50 slots for all requests
_PODS_AT_ONCE = 12  # of them to pods: no decision depends on their labels, so other writes must not wait for them
_LISTS = ("defensePreparingPods", "defenseCheckingPods", "defenseCheckPassPods")


class _WithStatus(Protocol):
    @property
    def metadata(self) -> Metadata: ...

    @property
    def status(self) -> msgspec.Struct: ...


S = TypeVar("S", bound=_WithStatus)


class _Named(msgspec.Struct):
    metadata: ObjectMeta


class Writer:
    """Writes for the controllers. ConflictError always means: since the caller read the object, the object has changed
    or was created again."""

    def __init__(self, client: Client, caches: Caches, metrics: Metrics) -> None:
        self._client = client
        self._caches = caches
        self._metrics = metrics
        self._turns = _Turns(_AT_ONCE)
        self._turns_of_pods = _Turns(_PODS_AT_ONCE)

    async def create(
        self, informer: Informer[T], obj: ChangeWorkload | ChangePod | OpsConfigInfo | ReleaseFreeze, namespace: str
    ) -> T:
        """Create the object and return it as the informer keeps it.

        If the API server fails or cannot be reached, the object may exist nevertheless. This method then reads the
        object, so that the caller does not create it a second time under another name. If the object cannot be read
        either, the first error is raised.
        """
        resource = informer.resource
        try:
            async with self._turns.of(namespace):
                answer = await self._client.create(resource, obj, namespace, as_=msgspec.Raw)
        except (ServerError, UnreachableError) as error:
            try:
                answer = await self._client.get(resource, obj.metadata.name, namespace, as_=msgspec.Raw)
            except KubernetesError:
                raise error from None
        return self._to_cache(informer, answer, "create")

    async def patch(self, informer: Informer[T], obj: T, operations: Sequence[Operation]) -> T:
        """Apply a JSON patch to the object with this uid, not to another one of the same name."""
        return self._to_cache(informer, await self._patch(informer.resource, obj.metadata, operations), "patch")

    async def try_patch(self, informer: Informer[T], obj: T, operations: Sequence[Operation]) -> msgspec.Raw:
        """What `patch` would make of the object, with what webhooks change. Nothing is written."""
        return await self._patch(informer.resource, obj.metadata, operations, dry_run=True)

    async def create_uncached(self, resource: Resource, obj: dict[str, Any], namespace: str) -> msgspec.Raw:
        """Create an object that no cache keeps, and return it. AlreadyExistsError if there is one of that name."""
        async with self._turns.of(namespace):
            answer = await self._client.create(resource, obj, namespace, as_=msgspec.Raw)
        self._metrics.writes.labels(resource.kind, "create").inc()
        return answer

    async def evict(self, metadata: Metadata) -> None:
        """Evict the pod with this uid. NotFoundError, ConflictError: it does not exist any more.

        The answer has no pod, so the pod is read: a decision that comes before the watch knows that it is terminating.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata.uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata.name, "namespace": metadata.namespace},
            "deleteOptions": options,
        }
        async with self._turns_of_pods.of(metadata.namespace), self._turns.of(metadata.namespace):
            await self._client.create(
                PODS, body, metadata.namespace, name=metadata.name, subresource="eviction", as_=msgspec.Raw
            )
        self._metrics.writes.labels(PODS.kind, "create eviction").inc()
        with contextlib.suppress(NotFoundError):
            found = await self._client.get(PODS, metadata.name, metadata.namespace, as_=msgspec.Raw)
            self._caches.pods.observe(self._caches.pods.read(found))

    async def patch_uncached(
        self, resource: Resource, metadata: Metadata, operations: Sequence[Operation]
    ) -> msgspec.Raw:
        """Like `patch`, for an object that no cache keeps. Returns it."""
        answer = await self._patch(resource, metadata, operations)
        self._metrics.writes.labels(resource.kind, "patch").inc()
        return answer

    async def _patch(
        self, resource: Resource, metadata: Metadata, operations: Sequence[Operation], *, dry_run: bool = False
    ) -> msgspec.Raw:
        guarded = [{"op": "test", "path": "/metadata/uid", "value": metadata.uid}, *operations]
        of_pods = self._turns_of_pods.of(metadata.namespace) if resource == PODS else contextlib.nullcontext()
        try:
            async with of_pods, self._turns.of(metadata.namespace):
                return await self._client.patch(
                    resource,
                    guarded,
                    metadata.name,
                    metadata.namespace,
                    type_=PatchType.JSON,
                    dry_run=dry_run,
                    as_=msgspec.Raw,
                )
        except InvalidError as error:
            # A 422 for an invalid object has causes. A 422 for a failed `test` operation has none.
            if error.details.get("causes"):
                raise
            raise ConflictError(
                f"{resource.kind} {metadata.namespace}/{metadata.name} has changed since it was read: {error}",
                code=error.code,
                reason=error.reason,
            ) from error

    async def save_release(self, release: Release, status: ChangeWorkloadStatus, *, lists: bool) -> Release:
        """Store the changed fields of the status, guarded by the resourceVersion. The three long lists of pods are
        written only if `lists` is true."""
        patch = merge_patch(msgspec.to_builtins(release.status), msgspec.to_builtins(status))
        for name in _LISTS:
            if lists:
                patch.setdefault(name, None)
            else:
                patch.pop(name, None)
        answer = await self._save(CHANGE_WORKLOADS, release.metadata, patch)
        return self._to_cache(self._caches.releases, answer, "patch status")

    async def read_batch(self, batch: Batch | ChangePod) -> ChangePod:
        """The whole ChangePod of a batch, as the API server has it now. ConflictError if it does not exist any more."""
        metadata = batch.metadata
        try:
            found = await self._client.get(CHANGE_PODS, metadata.name, metadata.namespace, as_=ChangePod)
        except NotFoundError as error:
            raise ConflictError(
                f"ChangePod {metadata.namespace}/{metadata.name} does not exist any more", code=409
            ) from error
        if found.metadata.uid != metadata.uid:
            raise ConflictError(f"ChangePod {metadata.namespace}/{metadata.name} was created again", code=409)
        return found

    async def release_uid(self, name: str, namespace: str) -> str:
        """The uid of a ChangeWorkload, as the API server has it now; empty if it does not exist."""
        try:
            found = await self._client.get(CHANGE_WORKLOADS, name, namespace, as_=_Named)
        except NotFoundError:
            return ""
        return found.metadata.uid

    async def live_batch(self, name: str, namespace: str) -> ChangePod | None:
        """A ChangePod, as the API server has it now; None if it does not exist."""
        try:
            return await self._client.get(CHANGE_PODS, name, namespace, as_=ChangePod)
        except NotFoundError:
            return None

    async def save_batch(self, batch: ChangePod, status: ChangePodStatus) -> ChangePod:
        """Store the changed fields of the status, guarded by the resourceVersion."""
        patch = merge_patch(msgspec.to_builtins(batch.status), msgspec.to_builtins(status))
        answer = await self._save(CHANGE_PODS, batch.metadata, patch)
        self._to_cache(self._caches.batches, answer, "patch status")
        return decode(answer, ChangePod)

    async def save_status(self, informer: Informer[S], obj: S, status: msgspec.Struct) -> S:
        """Store the changed fields of the status, guarded by the resourceVersion."""
        patch = merge_patch(msgspec.to_builtins(obj.status), msgspec.to_builtins(status))
        return self._to_cache(informer, await self._save(informer.resource, obj.metadata, patch), "patch status")

    async def replace_status(self, informer: Informer[T], changed: T) -> T:
        """Replace the status by that of `changed`, guarded by its resourceVersion, as gatekeepers do, which write it
        too."""
        resource, metadata = informer.resource, changed.metadata
        answer = await self._client.replace(
            resource, changed, metadata.name, metadata.namespace, subresource="status", as_=msgspec.Raw
        )
        return self._to_cache(informer, answer, "update status")

    async def delete(self, resource: Resource, metadata: Metadata, *, unchanged: bool = False) -> bool:
        """Delete the object with this uid; `unchanged`: only if it has this resourceVersion. Returns whether it was
        deleted. It is no error if the object does not exist any more."""
        try:
            async with self._turns.of(metadata.namespace):
                await self._client.delete(
                    resource,
                    metadata.name,
                    metadata.namespace,
                    uid=metadata.uid,
                    resource_version=metadata.resource_version if unchanged else "",
                    propagation="Background",
                )
        except (NotFoundError, ConflictError):
            return False
        self._metrics.writes.labels(resource.kind, "delete").inc()
        return True

    async def _save(self, resource: Resource, metadata: Metadata, status: dict[str, Any]) -> msgspec.Raw:
        patch = {"metadata": {"resourceVersion": metadata.resource_version}, "status": status}
        async with self._turns.of(metadata.namespace):
            return await self._client.patch(
                resource, patch, metadata.name, metadata.namespace, subresource="status", as_=msgspec.Raw
            )

    def _to_cache(self, informer: Informer[T], answer: msgspec.Raw, verb: str) -> T:
        """Count the write, and put the API server's answer into the cache before the watch brings it."""
        self._metrics.writes.labels(informer.resource.kind, verb).inc()
        obj = informer.read(answer)
        informer.observe(obj)
        return obj


class _Turns:
    """Bounds the writes to one namespace: `at_once` may be in flight at the same time.

    Writes to the pods of one namespace can be slow, because a webhook for these pods does not answer. A release of
    hundreds of pods must not keep all slots of the client meanwhile.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, namespace: str) -> asyncio.Semaphore:
        """The semaphore of the namespace. It exists as long as somebody uses it."""
        found = self._semaphores.get(namespace)
        if found is None:
            found = self._semaphores[namespace] = asyncio.Semaphore(self._at_once)
        return found


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The RFC 7386 merge patch of the top-level fields that turns `old` into `new`. Lists are replaced as a whole."""
    changed = {
        name: _replacing(old.get(name), value) for name, value in new.items() if name not in old or old[name] != value
    }
    return {**changed, **{name: None for name in old if name not in new}}


def _replacing(old: Any, new: Any) -> Any:
    """The patch of one field. A key of an object that `new` lacks has to be null in the patch, else it stays."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**dict.fromkeys(old), **{key: _replacing(old.get(key), below) for key, below in new.items()}}
    return new


def owner(resource: Resource, metadata: Metadata) -> OwnerReference:
    """A controller owner reference to an object of `resource`."""
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
