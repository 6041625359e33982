"""Owner references: which objects a controller manages, and how it adopts and releases them.

A controller adopts objects that its selector matches and that have no controller. It releases its objects that the
selector no longer matches (pkg/controller/controller_ref_manager.go).
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from kube_base.access.client import Client, PatchType
from kube_base.access.errors import NotFoundError
from kube_base.resources import Resource
from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import Bare, LabelSelector, Meta, Object


class HasMeta(Protocol):
    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=HasMeta)

OWNER = "owner"
"""The name of an informer's index: objects by their controller (see `index_key`)."""


def controller_reference(resource: Resource, owner: Meta) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def managed(owner: Meta, selector: LabelSelector, objects: Iterable[T]) -> list[T]:
    """The objects that `owner` controls and selects."""
    return [
        obj
        for obj in objects
        if obj.metadata.controller
        and obj.metadata.controller.uid == owner.uid
        and selectors.matches(selector, obj.metadata.labels)
    ]


def to_adopt(owner: Meta, selector: LabelSelector, objects: Iterable[T]) -> list[T]:
    """The objects without a controller that `owner` selects."""
    if owner.deletion_timestamp is not None:
        return []
    return [
        obj
        for obj in objects
        if obj.metadata.controller is None
        and obj.metadata.deletion_timestamp is None
        and obj.metadata.namespace == owner.namespace
        and selectors.matches(selector, obj.metadata.labels)
    ]


def to_release(owner: Meta, selector: LabelSelector, objects: Iterable[T]) -> list[T]:
    """The objects that `owner` controls but no longer selects."""
    if owner.deletion_timestamp is not None:
        return []
    return [
        obj
        for obj in objects
        if obj.metadata.controller
        and obj.metadata.controller.uid == owner.uid
        and not selectors.matches(selector, obj.metadata.labels)
    ]


def index_key(obj: HasMeta) -> list[str]:
    """The index values of an object: the uid of its controller or, without one, the value of `orphans`."""
    controller = obj.metadata.controller
    return [controller.uid if controller else orphans(obj.metadata.namespace)]


def orphans(namespace: str) -> str:
    """The index value of the objects of a namespace that have no controller."""
    return f"unmanaged in {namespace}"


def adopt_patch(resource: Resource, owner: Meta, obj: Meta) -> Object:
    """A strategic merge patch. It fails for another object of the same name, because it contains the uid."""
    return {"metadata": {"ownerReferences": [controller_reference(resource, owner)], "uid": obj.uid}}


def release_patch(owner: Meta, obj: Meta) -> Object:
    return {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.uid}], "uid": obj.uid}}


async def claim(
    client: Client,
    resource: Resource,
    owner: Meta,
    selector: LabelSelector,
    dependents: Informer[T],
    wanted: Callable[[T], bool] = lambda _: True,
    *,
    releases: bool = True,
) -> list[T]:
    """The dependents of `owner`. First adopts matching orphans that are `wanted`. Releases dependents that no longer
    match, unless `releases` is false. `dependents` must have the index `OWNER`."""

    async def patch(obj: T, body: Object) -> T:
        name, namespace = obj.metadata.name, obj.metadata.namespace
        return await dependents.patch(body, name, namespace, type_=PatchType.STRATEGIC)

    owned = dependents.by_index(OWNER, owner.uid)
    unmanaged = dependents.by_index(OWNER, orphans(owner.namespace))
    for obj in to_release(owner, selector, owned) if releases else ():
        await patch(obj, release_patch(owner, obj.metadata))
    claimed = managed(owner, selector, owned)
    adoptable = [obj for obj in to_adopt(owner, selector, unmanaged) if wanted(obj)]
    if adoptable and await may_adopt(client, resource, owner):
        claimed += [await patch(obj, adopt_patch(resource, owner, obj.metadata)) for obj in adoptable]
    return claimed


async def may_adopt(client: Client, resource: Resource, owner: Meta) -> bool:
    """Whether the owner still exists in the API server and is not terminating. An owner that is being deleted with
    propagation policy Orphan must not adopt its dependents again."""
    try:
        fresh = await client.get(resource, owner.name, owner.namespace, as_=Bare)
    except NotFoundError:
        return False
    return fresh.metadata.uid == owner.uid and fresh.metadata.deletion_timestamp is None
