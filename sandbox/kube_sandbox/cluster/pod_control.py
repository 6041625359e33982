"""Creates, claims and deletes the pods of controllers, and writes the Events about it."""

import asyncio
import contextlib
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kube_base.access.client import PatchType
from kube_base.access.errors import ConflictError, KubernetesError, NamespaceTerminatingError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.resources import PODS, Resource
from kube_base.times import rfc3339
from kube_sandbox.cluster import ownership
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.kinds import LabelSelector, Meta, Object, Pod
from kube_sandbox.cluster.ownership import OWNER


class Messages(NamedTuple):
    """The messages of Events. `{pod}`, `{owner}` and `{error}` are filled in."""

    created: str = "Created pod: {pod}"
    create_failed: str = "Error creating: {error}"
    deleted: str = "Deleted pod: {pod}"
    delete_failed: str = "Error deleting: {error}"


class PodControl:
    """The pods of all owners of one kind."""

    def __init__(
        self, caches: Caches, recorder: EventRecorder, owners: Resource, messages: Messages | None = None
    ) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._pods = caches.pods
        self._recorder = recorder
        self._owners = owners
        self._messages = messages or Messages()
        self._deleted: set[str] = set()
        """Uids of deleted pods that the cache still shows as active; they are not deleted twice."""
        caches.pods.add_handler(self._changed)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (
            new is None or new.metadata.uid != old.metadata.uid or new.metadata.deletion_timestamp is not None
        ):
            self._deleted.discard(old.metadata.uid)

    def owned(self, owner: Meta, selector: LabelSelector) -> list[Pod]:
        """The pods of `owner` in the cache. Pods that were just deleted have a deletion timestamp."""
        return self._with_deletions(ownership.managed(owner, selector, self._pods.by_index(OWNER, owner.uid)))

    async def claim(
        self,
        owner: Meta,
        selector: LabelSelector,
        wanted: Callable[[Pod], bool] = lambda pod: pod.active,
    ) -> list[Pod]:
        """The pods of `owner`. First adopts matching orphans that are `wanted`. Releases pods that no longer match."""
        claimed = await ownership.claim(self._client, self._owners, owner, selector, self._pods, wanted)
        return self._with_deletions(claimed)

    async def create(self, owner: Meta, body: Object) -> Pod | None:
        """Create a pod. Returns None if the namespace is terminating, which is no error: its content is deleted."""
        name = body["metadata"].get("name", "")
        try:
            pod = await self._pods.create(body, owner.namespace)
        except NamespaceTerminatingError:
            return None
        except KubernetesError as error:
            text = self._messages.create_failed.format(pod=name, owner=owner.name, error=error)
            self.event(owner, "Warning", "FailedCreate", text)
            raise
        text = self._messages.created.format(pod=pod.metadata.name, owner=owner.name)
        self.event(owner, "Normal", "SuccessfulCreate", text)
        return pod

    async def delete(self, owner: Meta, pod: Pod) -> None:
        if pod.metadata.uid in self._deleted or pod.metadata.deletion_timestamp is not None:
            return
        metadata = pod.metadata
        self._deleted.add(metadata.uid)
        try:
            with contextlib.suppress(
                NotFoundError, ConflictError
            ):  # deleted, perhaps replaced by another pod of the same name
                await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except KubernetesError as error:
            self._deleted.discard(metadata.uid)
            text = self._messages.delete_failed.format(pod=metadata.name, owner=owner.name, error=error)
            self.event(owner, "Warning", "FailedDelete", text)
            raise
        text = self._messages.deleted.format(pod=metadata.name, owner=owner.name)
        self.event(owner, "Normal", "SuccessfulDelete", text)

    async def delete_all(self, owner: Meta, pods: Sequence[Pod]) -> None:
        """Delete the pods concurrently. After all attempts, raises the first error."""
        _raise_first(await asyncio.gather(*(self.delete(owner, pod) for pod in pods), return_exceptions=True))

    async def patch(self, pod: Pod, patch: Object, type_: PatchType = PatchType.MERGE, *, subresource: str = "") -> Pod:
        metadata = pod.metadata
        return await self._pods.patch(patch, metadata.name, metadata.namespace, type_=type_, subresource=subresource)

    def event(self, owner: Meta, type_: str, reason: str, message: str) -> None:
        self._recorder.event(ObjectRef.of(self._owners, owner), type_, reason, message)

    def _with_deletions(self, pods: Sequence[Pod]) -> list[Pod]:
        return [self._as_terminating(pod) if pod.metadata.uid in self._deleted else pod for pod in pods]

    def _as_terminating(self, pod: Pod) -> Pod:
        if pod.metadata.deletion_timestamp is not None:
            return pod
        return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=rfc3339(self._clock())))


async def in_batches(creations: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Run creations in batches of 1, 2, 4, ... and stop after a batch with an error. If a quota or a webhook refuses
    one pod, it refuses hundreds of equal ones too."""
    batch, done = 1, 0
    while done < len(creations):
        now = creations[done : done + batch]
        _raise_first(await asyncio.gather(*(create() for create in now), return_exceptions=True))
        done += len(now)
        batch *= 2


def pod_body(
    template: Object, owners: Resource, owner: Meta, labels: Mapping[str, str] = types.MappingProxyType({}), **name: str
) -> Object:
    """The pod of a template, with additional `labels` and with `name=` or `generateName=`."""
    metadata = template.get("metadata") or {}
    copied = {key: metadata[key] for key in ("annotations", "finalizers") if metadata.get(key)}
    labels = {**(metadata.get("labels") or {}), **labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **name,
            **copied,
            **({"labels": labels} if labels else {}),
            "ownerReferences": [ownership.controller_reference(owners, owner)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def _raise_first(answers: Sequence[object]) -> None:
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
