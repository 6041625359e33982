"""The part of an API server that gatekeepers and reconcilers of gates need."""

from collections.abc import Callable
from typing import Any

import msgspec

from kube_base.access.errors import AlreadyExistsError, ConflictError, NotFoundError
from kube_base.access.informer import Informer
from kube_base.resources import Resource
from kube_base.times import rfc3339

Place = tuple[str, str, str]
"""Plural, namespace and name."""


class Killed(BaseException):
    """The reconciler is killed."""


class Api:
    """The objects, each as its type: a struct, or a dict for workloads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.objects: dict[Place, Any] = {}
        self.versions: dict[Place, int] = {}
        self.removed: dict[Place, int] = {}
        self._clock = clock
        self._version = 0
        self.writes_left: int | None = None
        """After so many writes, the reconciler is killed; None: it is not."""
        self.after = False
        """Whether it is killed after the write is stored."""

    # as users

    def put(self, resource: Resource, obj: Any) -> Any:
        """Create an object or replace its spec, as a user does."""
        place = self.place(resource, obj)
        known = self.objects.get(place)
        if isinstance(obj, dict):
            generation = known["metadata"]["generation"] + 1 if known else 1
            obj = {**obj, "metadata": {**obj["metadata"], "generation": generation}}
        elif known is None:
            made = {"uid": f"{resource.plural}-{self._version}", "creation_timestamp": rfc3339(self._clock())}
            obj = _with_metadata(obj, generation=1, **made)
        else:
            own = known.metadata
            kept = {"uid": own.uid, "creation_timestamp": own.creation_timestamp, "generation": own.generation + 1}
            obj = msgspec.structs.replace(_with_metadata(obj, **kept), status=known.status)
        return self.store(place, obj)

    def delete(self, resource: Resource, namespace: str, name: str) -> None:
        place = resource.plural, namespace, name
        if self.objects.pop(place, None) is not None:
            self._version += 1
            self.versions.pop(place)
            self.removed[place] = self._version

    def of(self, resource: Resource) -> list[Any]:
        return [obj for (plural, _, _), obj in self.objects.items() if plural == resource.plural]

    def found(self, resource: Resource, namespace: str, name: str) -> Any:
        return self.objects.get((resource.plural, namespace, name))

    @staticmethod
    def place(resource: Resource, obj: Any) -> Place:
        if isinstance(obj, dict):
            return resource.plural, obj["metadata"]["namespace"], obj["metadata"]["name"]
        return resource.plural, obj.metadata.namespace, obj.metadata.name

    def store(self, place: Place, obj: Any) -> Any:
        self._version += 1
        if isinstance(obj, dict):
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        else:
            obj = _with_metadata(obj, resource_version=str(self._version))
        self.objects[place], self.versions[place] = obj, self._version
        return obj

    # as the clients of the product

    async def get(self, resource: Resource, name: str, namespace: str, *, as_: Any) -> Any:
        found = self.found(resource, namespace, name)
        if found is None:
            raise NotFoundError("it does not exist", code=404)
        return msgspec.json.decode(msgspec.json.encode(found), type=as_)

    async def replace(
        self, resource: Resource, changed: Any, name: str, namespace: str, *, subresource: str, as_: Any
    ) -> Any:
        found = self.found(resource, namespace, name)
        if found is None:
            raise NotFoundError("it does not exist", code=404)
        if found.metadata.resource_version != changed.metadata.resource_version:
            raise ConflictError("it has changed", code=409)
        return self.store((resource.plural, namespace, name), msgspec.structs.replace(found, status=changed.status))

    # as the writer of the reconciler

    async def save_status(self, informer: Informer[Any], obj: Any, status: Any) -> Any:
        """Store a status, guarded by the resourceVersion. The reconciler may be killed before it or after it."""
        self._before()
        changed = msgspec.structs.replace(obj, status=status)
        own = obj.metadata
        stored = await self.replace(
            informer.resource, changed, own.name, own.namespace, subresource="status", as_=type(obj)
        )
        self._after()
        informer.observe(stored)
        return stored

    async def create(self, informer: Informer[Any], obj: Any, namespace: str) -> Any:
        self._before()
        if self.found(informer.resource, namespace, obj.metadata.name) is not None:
            raise AlreadyExistsError("it exists", code=409)
        stored = self.put(informer.resource, obj)
        self._after()
        informer.observe(stored)
        return stored

    def _before(self) -> None:
        if self.writes_left == 0 and not self.after:
            raise Killed

    def _after(self) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Killed
            self.writes_left -= 1


def _with_metadata(obj: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **fields))


class Watching:
    """The caches of a process, and how far each of them has come."""

    def __init__(self, api: Api, informers: dict[str, tuple[Informer[Any], Callable[[Any], Any]]]) -> None:
        self._api = api
        self._informers = informers
        """By plural: the cache, and what it keeps of an object."""
        self._seen: dict[Place, int] = {}
        self.known: dict[Place, Any] = {}
        """The objects, as they were when the caches came up to date."""

    def follow(self, plurals: list[str] | None = None) -> None:
        """Bring the caches of these kinds up to date; None: all."""
        api, wanted = self._api, self._informers if plurals is None else plurals
        for place, version in api.versions.items():
            if place[0] in wanted and place[0] in self._informers and self._seen.get(place) != version:
                informer, kept = self._informers[place[0]]
                informer.observe(kept(api.objects[place]))
                self._seen[place], self.known[place] = version, api.objects[place]
        for place in [each for each in self._seen if each[0] in wanted and each not in api.versions]:
            del self._seen[place], self.known[place]
            informer, _ = self._informers[place[0]]
            informer._cache.drop(place[1:], api.removed[place])

    @property
    def is_late(self) -> bool:
        wanted = {place: version for place, version in self._api.versions.items() if place[0] in self._informers}
        return self._seen != wanted

    def of(self, resource: Resource) -> list[Any]:
        return [obj for (plural, _, _), obj in self.known.items() if plural == resource.plural]
