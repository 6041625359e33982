"""Which objects a controller manages: the owner references that say so, and how they come and go.

A controller adopts what its selector matches and nobody manages, and lets go of what no longer matches
(pkg/controller/controller_ref_manager.go).
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from kube_sandbox.client.client import Client, PatchType
from kube_sandbox.client.errors import NotFoundError
from kube_sandbox.client.informer import Informer
from kube_sandbox.client.resources import Resource
from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.views import Bare, LabelSelector, Meta, Object


class HasMeta(Protocol):
    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=HasMeta)

OWNER = "owner"
"""Index: objects by their controller (see `index_key`)."""


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
    """Those of `objects` that `owner` controls and still selects."""
    return [
        obj
        for obj in objects
        if obj.metadata.controller
        and obj.metadata.controller.uid == owner.uid
        and selectors.matches(selector, obj.metadata.labels)
    ]


def to_adopt(owner: Meta, selector: LabelSelector, objects: Iterable[T]) -> list[T]:
    """Those that nobody manages but `owner` selects."""
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
    """Those that `owner` manages but no longer selects."""
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
    """An informer's index: by the uid of the managing controller, or (unmanaged) by `orphans`."""
    controller = obj.metadata.controller
    return [controller.uid if controller else orphans(obj.metadata.namespace)]


def orphans(namespace: str) -> str:
    """The index value of a namespace's unmanaged objects."""
    return f"unmanaged in {namespace}"


def adopt_patch(resource: Resource, owner: Meta, obj: Meta) -> Object:
    """A strategic merge patch; the uid makes sure that a namesake is not adopted."""
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
) -> list[T]:
    """The dependents of `owner`, after adopting those orphans that are `wanted` and letting go of what it no longer
    selects. `dependents` are indexed by `OWNER`."""

    async def patch(obj: T, body: Object) -> T:
        name, namespace = obj.metadata.name, obj.metadata.namespace
        return await dependents.patch(body, name, namespace, type_=PatchType.STRATEGIC)

    owned = dependents.by_index(OWNER, owner.uid)
    unmanaged = dependents.by_index(OWNER, orphans(owner.namespace))
    for obj in to_release(owner, selector, owned):
        await patch(obj, release_patch(owner, obj.metadata))
    mine = managed(owner, selector, owned)
    adoptable = [obj for obj in to_adopt(owner, selector, unmanaged) if wanted(obj)]
    if adoptable and await is_still_there(client, resource, owner):
        mine += [await patch(obj, adopt_patch(resource, owner, obj.metadata)) for obj in adoptable]
    return mine


async def is_still_there(client: Client, resource: Resource, owner: Meta) -> bool:
    """Asked anew before anything is adopted: an owner that is being deleted has just orphaned its dependents."""
    try:
        fresh = await client.get(resource, owner.name, owner.namespace, as_=Bare)
    except NotFoundError:
        return False
    return fresh.metadata.uid == owner.uid and fresh.metadata.deletion_timestamp is None
