"""The garbage collector. It deletes objects whose owners do not exist any more. For a foreground deletion, it deletes
the dependents before their owner; for propagation policy Orphan, it removes the owner references of the dependents.
`graph` has the owners of all objects."""

import asyncio
import contextlib
import functools
import logging
from http import HTTPStatus

import msgspec

from kube_base.access.client import PatchType
from kube_base.access.errors import ApiError, KubernetesError, NotFoundError
from kube_base.access.queue import WorkQueue
from kube_base.meta import OwnerReference
from kube_base.resources import CRDS, Resource
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.garbage.discovery import discover
from kube_sandbox.cluster.garbage.graph import FOREGROUND, ORPHAN, Graph, Item, OwnerState
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import Bare, Meta, Object
from kube_sandbox.cluster.ownership import HasMeta
from kube_sandbox.cluster.work import NotYet, work

logger = logging.getLogger(__name__)

_VERBS = frozenset({"list", "watch", "delete"})
_IGNORED = "events"  # many, short-lived and without owners
_DISCOVERY_DELAYS = (0.1, 0.5, 2.0, 5.0)
"""After a change of a CRD: seconds between discoveries. The API server serves the new resource a moment later."""
_DISCOVERY_PERIOD = 30.0  # seconds between discoveries without a change
_FIRST_SYNC = 10.0  # seconds to wait for all caches; a resource that cannot be listed must not block the rest
_MAX_GONE = 10_000


class GarbageCollector:
    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._shared = caches.informers
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue()
        self._kinds: dict[tuple[str, str], Resource] = {}  # by group and kind
        self._followed: dict[Resource, asyncio.Task[None]] = {}
        self._gone: dict[str, None] = {}  # uids of objects that do not exist; uids are never reused
        self._crds_changed = asyncio.Event()
        for informer in caches.informers:
            informer.add_handler(functools.partial(self._changed, informer.resource))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            informers = await self._follow_all(group)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_SYNC):
                    for informer in informers:
                        await informer.wait_synced()
            group.create_task(work(self._queue, self._collect, workers=8))
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._crds_changed.wait(), _DISCOVERY_PERIOD)
                pauses = _DISCOVERY_DELAYS if self._crds_changed.is_set() else _DISCOVERY_DELAYS[:1]
                self._crds_changed.clear()
                for pause in pauses:
                    await asyncio.sleep(pause)
                    await self._follow_all(group)

    async def _follow_all(self, group: asyncio.TaskGroup) -> list[Informer[Bare]]:
        """Watch all resources that can have owners or dependents, and stop watching those that are no longer served.
        Returns the new informers."""
        try:
            served = await discover(self._client)
        except KubernetesError as error:
            logger.warning("cannot discover the API", extra={"error": str(error)})
            return []
        self._kinds = {(resource.group, resource.kind): resource for resource in served}
        shared = {informer.resource for informer in self._shared}
        wanted = {
            resource for resource, verbs in served.items() if verbs >= _VERBS and resource.plural != _IGNORED
        } - shared
        for resource in self._followed.keys() - wanted:
            self._followed.pop(resource).cancel()
            self._graph.drop_all(resource)
        started = []
        for resource in wanted - self._followed.keys():
            informer = Informer(self._client, resource, Bare)
            informer.add_handler(functools.partial(self._changed, resource))
            self._followed[resource] = group.create_task(informer.run())
            started.append(informer)
        return started

    def _changed(self, resource: Resource, old: HasMeta | None, new: HasMeta | None) -> None:
        if resource == CRDS:
            self._crds_changed.set()
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(old.metadata)
        if new is None:
            return
        before = self._graph.get(new.metadata.uid)
        item = Item(resource, new.metadata)
        self._graph.put(item)
        if before is not None and old is not new and _relevant(before) == _relevant(item):
            return
        self._queue.add(new.metadata.uid)
        if item.awaits_dependents:
            self._add_all(item.metadata.uid)
        if before is not None:  # it may no longer block the deletion of its owners
            for owner in before.metadata.owner_references:
                self._queue.add(owner.uid)

    def _forget(self, metadata: Meta) -> None:
        self._graph.drop(metadata.uid)
        self._remember_gone(metadata.uid)
        self._add_all(metadata.uid)
        for owner in metadata.owner_references:
            self._queue.add(owner.uid)

    def _add_all(self, owner: str) -> None:
        for dependent in self._graph.dependents(owner):
            self._queue.add(dependent.metadata.uid)

    def _remember_gone(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _MAX_GONE:
            del self._gone[next(iter(self._gone))]

    async def _collect(self, uid: str) -> None:
        item = self._graph.get(uid)
        if item is None:
            return
        if item.orphans_dependents:
            await self._orphan(item)
        elif item.awaits_dependents:
            await self._finish_foreground(item)
        elif not item.is_terminating and item.metadata.owner_references:
            await self._collect_by_owners(item)

    async def _collect_by_owners(self, item: Item) -> None:
        """Delete an object if each owner is absent or waits for it. If owners remain, remove the other references."""
        owners = item.metadata.owner_references
        states = [(owner, await self._owner_state(item, owner)) for owner in owners]
        present = [owner for owner, owner_state in states if owner_state is OwnerState.PRESENT]
        if present:
            if len(present) < len(owners):
                await self._patch(item, {"ownerReferences": present})
            return
        dependents = list(self._graph.dependents(item.metadata.uid))
        propagation = item.propagation
        if dependents and any(owner_state is OwnerState.WAITING for _, owner_state in states):
            propagation = "Foreground"
            if any(dependent.awaits_dependents for dependent in dependents):
                # A cycle of owners: each would wait for the next one.
                freed = [msgspec.structs.replace(owner, block_owner_deletion=False) for owner in owners]
                await self._patch(item, {"ownerReferences": freed})
                return
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": item.metadata.uid, "resourceVersion": item.metadata.resource_version},
        }
        path = item.resource.path(item.metadata.namespace, item.metadata.name)
        with contextlib.suppress(NotFoundError):
            await self._client.request("DELETE", path, body=options)

    async def _owner_state(self, item: Item, owner: OwnerReference) -> OwnerState:
        owner_state = self._graph.owner_state(item, owner)
        if owner_state is not None:
            return owner_state
        if owner.uid in self._gone:
            return OwnerState.ABSENT
        resource = self._kinds.get((owner.api_version.rpartition("/")[0], owner.kind))
        if resource is None:
            raise NotYet(f"the API does not serve {owner.api_version} {owner.kind}, which owns {item.metadata.name}")
        if resource.namespaced and not item.resource.namespaced:
            return OwnerState.PRESENT  # such a reference is invalid, and its owner cannot be looked up
        try:
            found = await self._client.get(resource, owner.name, item.metadata.namespace, as_=Bare)
        except NotFoundError:
            found = None
        if found is None or found.metadata.uid != owner.uid:
            self._remember_gone(owner.uid)
            return OwnerState.ABSENT
        return OwnerState.WAITING if Item(resource, found.metadata).awaits_dependents else OwnerState.PRESENT

    async def _orphan(self, item: Item) -> None:
        uid = item.metadata.uid
        for dependent in self._graph.dependents(uid):
            await self._disown(dependent, uid)
        await self._drop_finalizer(item, ORPHAN)

    async def _disown(self, dependent: Item, uid: str) -> None:
        """Remove the reference to an owner, with the patches of garbagecollector.go, `orphanDependents`: a strategic
        merge patch or, for a custom resource, a merge patch."""
        metadata = dependent.metadata
        references = [{"$patch": "delete", "uid": uid}]
        patch = {"metadata": {"ownerReferences": references, "uid": metadata.uid}}
        try:
            with contextlib.suppress(NotFoundError):
                await self._client.patch(
                    dependent.resource, patch, metadata.name, metadata.namespace, type_=PatchType.STRATEGIC
                )
        except ApiError as error:
            if error.code != HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
                raise
            kept = [owner for owner in metadata.owner_references if owner.uid != uid]
            await self._patch(dependent, {"ownerReferences": kept})

    async def _finish_foreground(self, item: Item) -> None:
        """Remove the finalizer of an owner deleted in the foreground when no dependent blocks it."""
        blocking = self._graph.blocking(item.metadata.uid)
        if not blocking:
            await self._drop_finalizer(item, FOREGROUND)
        for dependent in blocking:
            if not dependent.is_terminating:
                self._queue.add(dependent.metadata.uid)

    async def _drop_finalizer(self, item: Item, name: str) -> None:
        await self._patch(item, {"finalizers": [one for one in item.metadata.finalizers if one != name]})

    async def _patch(self, item: Item, metadata: Object) -> None:
        """Patch the metadata. The resource version makes the patch fail if the object has changed since the
        decision."""
        patch = {"metadata": {**metadata, "resourceVersion": item.metadata.resource_version}}
        with contextlib.suppress(NotFoundError):
            await self._client.patch(item.resource, patch, item.metadata.name, item.metadata.namespace)


def _relevant(item: Item) -> tuple[object, ...]:
    """The properties of an object that the garbage collector reads."""
    return item.is_terminating, item.metadata.finalizers, item.metadata.owner_references
