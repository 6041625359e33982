"""Finds the protected objects of a cluster, and those that stay although their owner or namespace is deleted."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from altershield.api.deletion_protection import CASCADING_LABEL, LABEL, REASON, Level, level, quotable
from altershield.api.protected_kinds import KRUISE, PROTECTED_KINDS, ProtectedKind
from altershield.api.schema import doc
from altershield.views import permission
from altershield.views.document import Document, Part
from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ForbiddenError, NotFoundError
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import CRDS, NAMESPACES, Resource

_SELECTORS = (LABEL, CASCADING_LABEL)


class Deletion(StrEnum):
    """What the API server does with the deletion of a protected object."""

    REFUSED = "refused"
    ALLOWED = "allowed"
    ASKS = "asks"
    """It asks the gatekeeper, which reads the content."""
    BEGUN = "begun"
    """The object is terminating. Its finalizers or its content delay it; the label does not."""


@dataclass
class Protected:
    """An object with one of the labels."""

    kind: ProtectedKind
    metadata: ObjectMeta
    level: Level | None
    """None: the label has another value, which protects nothing."""
    deletion: Deletion
    because: str
    """What `Cascading` counts: `replicas 3`. Empty if it counts nothing."""
    stays: str = ""
    """Why the object should be deleted already: `its owner ReplicaSet web-1 is deleted`. Empty if it should not."""

    @property
    def reason(self) -> str:
        return quotable(self.metadata.annotations.get(REASON, ""))


class ProtectedObject(Part, frozen=True):
    """An object that is protected from deletion."""

    api_version: Annotated[str, doc("Its apiVersion.")]
    kind: Annotated[str, doc("Its kind.")]
    namespace: Annotated[str, doc("Its namespace; empty: it is in none.")]
    name: Annotated[str, doc("Its name.")]
    uid: Annotated[str, doc("Its uid.")]
    level: Annotated[str | None, doc("`Always` or `Cascading`; null: the label has another value, and does nothing.")]
    deletion: Annotated[
        Deletion, doc("What a deletion would get now; `asks`: the gatekeeper reads the content; `begun`: it has begun.")
    ]
    because: Annotated[str, doc("What `Cascading` counts: `replicas 3`; may be empty.")]
    reason: Annotated[str, doc("Why it is protected, by the person who did it; may be empty.")]
    stays: Annotated[str, doc("Why it should be deleted already, and only its label keeps it; may be empty.")]


class ProtectedObjectList(Document, frozen=True):
    """The objects that are protected from deletion."""

    items: Annotated[tuple[ProtectedObject, ...], doc("The objects.")]


def protected_list(items: Iterable[Protected]) -> ProtectedObjectList:
    return ProtectedObjectList(tuple(map(_shown, items)))


def _shown(item: Protected) -> ProtectedObject:
    return ProtectedObject(
        api_version=item.kind.resource.api_version,
        kind=item.kind.resource.kind,
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        uid=item.metadata.uid,
        level=str(item.level) if item.level is not None else None,
        deletion=item.deletion,
        because=item.because,
        reason=item.reason,
        stays=item.stays,
    )


@dataclass
class Found:
    items: list[Protected] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Lists that failed. One sentence names all kinds that the same role allows to list."""


class _Head(msgspec.Struct):
    metadata: ObjectMeta


async def find(client: Client, namespace: str) -> Found:
    """The objects in a namespace, and those outside of namespaces; an empty `namespace` means all of them."""
    discovery = _Discovery(client)
    wanted = [kind for kind in PROTECTED_KINDS if kind.resource.namespaced or not namespace]
    lists = await asyncio.gather(*(_list(client, discovery, kind, namespace) for kind in wanted))
    found = Found([item for items in lists if not isinstance(items, ApiError) for item in items])
    failed = [(kind, error) for kind, error in zip(wanted, lists, strict=True) if isinstance(error, ApiError)]
    found.problems = _problems(failed, namespace)
    owners = _Owners(client, discovery)
    for item in found.items:
        item.stays = await owners.why_it_stays(item)
    return found


def _problems(failed: Sequence[tuple[ProtectedKind, ApiError]], namespace: str) -> list[str]:
    problems = []
    forbidden: dict[str, list[tuple[ProtectedKind, ForbiddenError]]] = {}
    for kind, error in failed:
        if isinstance(error, ForbiddenError):
            forbidden.setdefault(_role(kind, namespace), []).append((kind, error))
        else:
            problems.append(f"cannot list {kind.plural} {permission.place(namespace)}: {error}")
    for role, kinds in forbidden.items():
        plurals = ", ".join(kind.plural for kind, _ in kinds)
        problems.append(permission.refused(f"list {plurals} {permission.place(namespace)}", kinds[0][1], role))
    return problems


def _role(kind: ProtectedKind, namespace: str) -> str:
    """What allows to list the objects of this kind."""
    governed = any(kind.resource == adapter.resource for adapter in ADAPTERS)  # altershield-view adds them to `view`
    if governed or kind.resource.group not in (KRUISE, CRDS.group):
        return permission.role("view", namespace)
    return f"a role with the verb list on these kinds {permission.place(namespace)}"


async def _list(
    client: Client, discovery: "_Discovery", kind: ProtectedKind, namespace: str
) -> list[Protected] | ApiError:
    objects: dict[str, dict[str, Any]] = {}
    try:
        for selector in _SELECTORS:
            listed: Any = await client.list(kind.resource, namespace, label_selector=selector)
            objects |= {obj["metadata"]["uid"]: obj for obj in listed.items}
    except NotFoundError:
        return []  # the cluster does not have this kind
    except ForbiddenError as error:  # also of a kind that the cluster does not have
        return error if await discovery.serves(kind.resource) else []
    except ApiError as error:
        return error
    items = [judged(kind, obj) for obj in objects.values()]
    return sorted(items, key=lambda item: (item.metadata.namespace, item.metadata.name))


def judged(kind: ProtectedKind, obj: dict[str, Any]) -> Protected:
    """What the policies decide about the deletion of an object."""
    metadata = msgspec.convert(obj["metadata"], ObjectMeta)
    asked = level(metadata.labels)
    content = kind.content
    because = ""
    if metadata.deletion_timestamp is not None:
        deletion = Deletion.BEGUN
    elif asked is Level.ALWAYS:
        deletion = Deletion.REFUSED
    elif asked is None or content is None:
        deletion = Deletion.ALLOWED
    elif not content.field:
        deletion = Deletion.ASKS
    else:
        count = content.count(obj)
        because = f"{content.noun} {count}"
        deletion = Deletion.REFUSED if count > 0 else Deletion.ALLOWED
    return Protected(kind, metadata, asked, deletion, because)


class _Discovery:
    """The resources that the API server serves. Each group and version is read once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._resources: dict[str, dict[str, Resource]] = {}

    async def serves(self, resource: Resource) -> bool:
        """Whether the API server serves the resource. True if that is unknown."""
        try:
            return resource.kind in await self.resources(resource.api_version)
        except ApiError:
            return True

    async def resources(self, api_version: str) -> dict[str, Resource]:
        """The resources by kind. ApiError: they cannot be read."""
        if api_version not in self._resources:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            group, _, short = api_version.rpartition("/")
            try:
                served = msgspec.json.decode(await self._client.request("GET", path))["resources"]
            except NotFoundError:
                served = []
            self._resources[api_version] = {
                each["kind"]: Resource(group, short, each["name"], each["kind"], namespaced=each["namespaced"])
                for each in served
                if "/" not in each["name"]
            }
        return self._resources[api_version]


class _Owners:
    """Which owners and namespaces are deleted. Each is read once."""

    def __init__(self, client: Client, discovery: _Discovery) -> None:
        self._client = client
        self._discovery = discovery
        self._state: dict[tuple[str, str, str, str], ObjectMeta | None] = {}

    async def why_it_stays(self, item: Protected) -> str:
        """Empty if an owner is there, and for an object without owners in a namespace that is not terminating."""
        if item.deletion == Deletion.BEGUN:
            return ""
        metadata = item.metadata
        if metadata.namespace:
            namespace = await self._read(NAMESPACES, metadata.namespace, "")
            if namespace is not None and namespace.deletion_timestamp:
                return f"its Namespace {metadata.namespace} is terminating"
        gone = [owner for owner in metadata.owner_references if await self._is_gone(owner, metadata.namespace)]
        if not gone or len(gone) < len(metadata.owner_references):
            return ""
        return f"its owner {gone[0].kind} {gone[0].name} is deleted"

    async def _is_gone(self, owner: OwnerReference, namespace: str) -> bool:
        """Whether an owner is deleted or is being deleted. False if that is unknown."""
        try:
            resource = (await self._discovery.resources(owner.api_version)).get(owner.kind)
            if resource is None:
                return False
            metadata = await self._read(resource, owner.name, namespace if resource.namespaced else "")
        except ApiError:
            return False
        return metadata is None or metadata.uid != owner.uid or metadata.deletion_timestamp is not None

    async def _read(self, resource: Resource, name: str, namespace: str) -> ObjectMeta | None:
        """The metadata; None if there is no such object. ApiError: it cannot be read."""
        key = (resource.group, resource.plural, namespace, name)
        if key not in self._state:
            try:
                self._state[key] = (await self._client.get(resource, name, namespace, as_=_Head)).metadata
            except NotFoundError:
                self._state[key] = None
        return self._state[key]


def staying(items: Sequence[Protected]) -> list[Protected]:
    """Those that stay although their owner or namespace is deleted."""
    return [item for item in items if item.stays]
