"""A Kubernetes API of one process, for tests of the client side: objects of any resource in memory, lists in
pages, watches, and every fault that a test orders. No validation and no defaults: what is put in comes out."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.resources import Resource

Object = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Place(NamedTuple):
    """Where an object lives; a collection has no name, that of all namespaces no namespace."""

    prefix: str  # as api/v1
    plural: str
    namespace: str
    name: str

    @classmethod
    def of(cls, path: str) -> "Place":
        parts = path.strip("/").split("/")
        start = 2 if parts[0] == "api" else 3
        prefix, rest = "/".join(parts[:start]), parts[start:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        return cls(prefix, rest[0], namespace, rest[1] if len(rest) > 1 else "")

    def holds(self, other: "Place") -> bool:
        return self[:2] == other[:2] and self.namespace in ("", other.namespace)


class _Change(NamedTuple):
    version: int
    type: str
    place: Place
    object: Object


class _Fault(NamedTuple):
    concerns: Callable[[web.Request], bool]
    answer: Answer
    times: list[int]


class StubApi:
    """Serves on one loopback port whenever it is started; objects outlive a stop."""

    def __init__(self) -> None:
        self.objects: dict[Place, Object] = {}
        self.version = 100
        self.requests: list[web.Request] = []
        self.silent = False
        """Watches send nothing while this is true."""
        self.streams_lists = True
        """Whether lists are offered as streams, as since 1.34."""
        self._history: list[_Change] = []
        self._oldest = 0
        self._changed = asyncio.Condition()
        self._faults: list[_Fault] = []
        self._watches: set[web.StreamResponse] = set()
        self._requests_changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            self.cut_watches()
            await runner.cleanup()

    @property
    def configuration(self) -> Configuration:
        return Configuration(host=f"http://127.0.0.1:{self._port}")

    # what tests do to the cluster

    async def put(self, resource: Resource, obj: Object) -> Object:
        """Create or replace an object, as somebody else in the cluster would."""
        metadata = obj["metadata"]
        place = Place.of(resource.path(metadata.get("namespace", ""), metadata["name"]))
        return await self._store("MODIFIED" if place in self.objects else "ADDED", place, obj)

    async def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        place = Place.of(resource.path(namespace, name))
        await self._store("DELETED", place, self.objects[place])

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self.objects.get(Place.of(resource.path(namespace, name)))

    def all(self, resource: Resource) -> list[Object]:
        collection = Place.of(resource.path())
        return [obj for place, obj in self.objects.items() if collection.holds(place)]

    async def send_raw(self, line: str) -> None:
        """Put `line` into every watch as it stands."""
        for watch in self._watches:
            await watch.write(line.encode())

    def forget_history(self) -> None:
        """Older resourceVersions are 410 from now on."""
        self._oldest = self.version
        self._history.clear()

    def cut_watches(self) -> None:
        for watch in self._watches:
            if watch._req is not None and watch._req.transport is not None:
                watch._req.transport.abort()
        self._watches.clear()

    def fault(self, concerns: Callable[[web.Request], bool], answer: Answer, times: int = 1) -> None:
        """Answer the next `times` requests that `concerns` chooses with `answer`."""
        self._faults.append(_Fault(concerns, answer, [times]))

    async def wait_for_requests(self, concerns: Callable[[web.Request], bool], count: int) -> list[web.Request]:
        """The requests so far that `concerns` chooses, once there are `count`."""
        async with self._requests_changed:
            await self._requests_changed.wait_for(lambda: sum(map(concerns, self.requests)) >= count)
        return [request for request in self.requests if concerns(request)]

    # what it answers

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        async with self._requests_changed:
            self.requests.append(request)
            self._requests_changed.notify_all()
        for fault in self._faults:
            if fault.times[0] > 0 and fault.concerns(request):
                fault.times[0] -= 1
                return await fault.answer(request)
        return await self.answer(request)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The right answer."""
        place = Place.of(request.path)
        if request.method == "POST":
            obj = await request.json()
            place = place._replace(name=obj["metadata"]["name"])
            if place in self.objects:
                return status(409, "AlreadyExists")(request)
            return web.json_response(await self._store("ADDED", place, obj), status=201)
        if not place.name:
            return await (self._watch(request) if is_watch(request) else self.list_page(request))
        current = self.objects.get(place)
        if current is None:
            return status(404, "NotFound")(request)
        return await self._one(request, place, current)

    async def _one(self, request: web.Request, place: Place, current: Object) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(current)
        if request.method == "DELETE":
            await self._store("DELETED", place, current)
            return web.json_response({"kind": "Status", "status": "Success"})
        obj = await request.json()
        if request.method == "PATCH":
            obj = _merged(current, obj)
        expected = obj["metadata"].get("resourceVersion")
        if expected and expected != current["metadata"]["resourceVersion"]:
            return status(409, "Conflict")(request)
        return web.json_response(await self._store("MODIFIED", place, obj))

    async def _store(self, type_: str, place: Place, obj: Object) -> Object:
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        if type_ == "DELETED":
            del self.objects[place]
        else:
            self.objects[place] = obj
        self._history.append(_Change(self.version, type_, place, obj))
        async with self._changed:
            self._changed.notify_all()
        return obj

    async def list_page(self, request: web.Request) -> web.StreamResponse:
        """The answer to a list at this moment."""
        place = Place.of(request.path)
        items = [obj for other, obj in sorted(self.objects.items()) if place.holds(other)]
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 500))
        metadata = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        return web.json_response({"metadata": metadata, "items": items[start : start + limit] or None})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        place = Place.of(request.path)
        listing = "sendInitialEvents" in request.query
        if listing and not self.streams_lists:
            return status(422, "Invalid")(request)
        sent = self.version if listing else int(request.query["resourceVersion"])
        if sent < self._oldest:
            return status(410, "Expired")(request)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches.add(response)
        try:
            if listing:
                await self.send_list(response, place)
            while True:
                await self._wait_for_news_since(sent)
                for change in [change for change in self._history if change.version > sent]:
                    sent = change.version
                    if place.holds(change.place):
                        await response.write(line(change.type, change.object))
        finally:
            self._watches.discard(response)

    async def send_list(self, response: web.StreamResponse, place: Place) -> None:
        """What is there at this moment, and the bookmark after it."""
        found = [line("ADDED", obj) for other, obj in sorted(self.objects.items()) if place.holds(other)]
        await response.write(b"".join((*found, end_of_list(self.version))))

    async def _wait_for_news_since(self, version: int) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: not self.silent and bool(self._history) and self._history[-1].version > version
            )


def is_watch(request: web.Request) -> bool:
    return "watch" in request.query


def is_list(request: web.Request) -> bool:
    """A list, in pages or as a stream."""
    return is_streamed_list(request) or is_paged_list(request)


def is_paged_list(request: web.Request) -> bool:
    return request.method == "GET" and not is_watch(request) and not Place.of(request.path).name


def is_streamed_list(request: web.Request) -> bool:
    return "sendInitialEvents" in request.query


def end_of_list(version: int) -> bytes:
    metadata = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return line("BOOKMARK", {"metadata": metadata})


def line(type_: str, obj: Object) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def status(code: int, reason: str = "", **headers: str) -> Callable[[web.Request], web.Response]:
    """An error as the API server words it."""
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": f"{code} {reason}".strip()}
    return lambda _request: web.json_response(body, status=code, headers=headers)


def answer(code: int, reason: str = "", **headers: str) -> Answer:
    async def give(request: web.Request) -> web.StreamResponse:
        return status(code, reason, **headers)(request)

    return give


@asynccontextmanager
async def serving(*, streaming_lists: bool = False) -> AsyncIterator[tuple[StubApi, Client]]:
    """A started stub and a client of it, which asks for lists in pages unless told otherwise."""
    api = StubApi()
    await api.start()
    async with Client(api.configuration, streaming_lists=streaming_lists) as client:
        try:
            yield api, client
        finally:
            await api.stop()


def _merged(current: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
