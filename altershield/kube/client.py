"""Requests to the Kubernetes API: typed objects in and out, one error tree, no retries.

Objects are decoded with msgspec straight from the answer's bytes into the type the caller reads, so nothing
that is not read is kept. Whoever calls decides whether a failed request may be repeated.
"""

import asyncio
import enum
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

import aiohttp
import msgspec
import orjson

from altershield.api.resources import Resource
from altershield.kube import credentials, stream
from altershield.kube.access import Access
from altershield.kube.configuration import Configuration
from altershield.kube.errors import CODES, UnreadableError
from altershield.kube.stream import WatchEvent
from altershield.kube.transport import CONNECT_TIMEOUT, Request, Transport
from altershield.kube.turns import turns

__all__ = ["Client", "ObjectList", "PatchType", "WatchEvent"]

T = TypeVar("T")

_REQUEST_TIMEOUT = 30.0  # seconds; the API server gives up on its own after 60
_LIST_TIMEOUT = 300.0  # for a whole answer: an API server may ignore the limit and send everything
_PAGE = 2000  # objects; of 20 KB each, a page holds the event loop for 10 ms when it is cut into its objects

_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """One list answer; `metadata.resource_version` is where a watch goes on from."""

    metadata: _ListMeta
    items: list[T]


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None  # an empty Go slice may be null


class Client:
    """One connection pool to one API server, used by one event loop. Close it, or use `async with`.

    At most `max_in_flight` requests are under way at once, watches not counted.
    """

    def __init__(self, configuration: Configuration, *, max_in_flight: int = 50, streaming_lists: bool = True) -> None:
        self.configuration = configuration
        """kubernetes-asyncio's: the server, how it is verified, and our credentials."""
        self.namespace = credentials.DEFAULT_NAMESPACE
        """The namespace that is meant where none is named: the kubeconfig context's, or the pod's own."""
        self.errors = dict.fromkeys(CODES, 0)
        """Requests and watches that failed, by `errors.code_of`; a read-only figure for everybody else."""
        self.streaming_lists = streaming_lists
        """Whether informers ask for lists as streams, where the API server offers them."""
        self._begin(Access(configuration), max_in_flight)

    def _begin(self, access: Access, max_in_flight: int) -> None:
        self._access = access
        self._slots = asyncio.Semaphore(max_in_flight)
        self._transport = Transport(access, self.errors)

    def apart(self, *, max_in_flight: int = 4) -> "Client":
        """A client of the same server with the same credentials, but with connections and slots of its own: for
        what must not wait behind other requests. Close it too. Its errors count in ours."""
        client = object.__new__(Client)
        client.configuration = self.configuration
        client.namespace = self.namespace
        client.errors = self.errors
        client.streaming_lists = self.streaming_lists
        client._begin(self._access, max_in_flight)
        return client

    @classmethod
    async def connect(
        cls, kubeconfig: str | None = None, *, context: str | None = None, max_in_flight: int = 50
    ) -> Self:
        """A client from a kubeconfig file; without one, from the pod's service account (unless `context` is given),
        else from the default kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError where there is none that can be
        used."""
        target = await credentials.load(kubeconfig, context)
        client = cls(target.configuration, max_in_flight=max_in_flight)
        client.namespace = target.namespace
        return client

    def hear(self, heard: Callable[[str, float], None]) -> None:
        """Call `heard` with the header Date of answers, and the seconds that these took, about once a second."""
        self._transport.heard = heard

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.configuration.host)

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: type[T] = dict) -> T:  # type: ignore[assignment]  # a plain dict unless a type is asked for
        return _decode(await self.request("GET", resource.path(namespace, name)), as_)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        as_: type[T] = dict,  # type: ignore[assignment]
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList[T]:
        """All objects, read in pages of one consistent snapshot."""
        metadata = _ListMeta("")
        items: list[T] = []
        turn = turns()
        async for page in self.pages(resource, namespace, label_selector=label_selector, field_selector=field_selector):
            metadata = page.metadata
            for item in page.items:
                items.append(_decode(item, as_))
                await turn.give_way()
        return ObjectList(metadata, items)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        """The pages of one consistent snapshot, their items still bytes, of which `metadata_only` leaves nothing but
        the metadata. GoneError when reading them took longer than the server keeps the snapshot (about five
        minutes)."""
        accept = _METADATA_LIST if metadata_only else _JSON
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(_PAGE)}
        timeout = aiohttp.ClientTimeout(_LIST_TIMEOUT, sock_connect=CONNECT_TIMEOUT, sock_read=_REQUEST_TIMEOUT)
        while True:
            request = Request("GET", resource.path(namespace), dict(query), _headers(accept), None, timeout)
            page = _decode(await self._answer(request), _Page)
            yield ObjectList(metadata=page.metadata, items=page.items or [])
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def create(
        self, resource: Resource, obj: object, namespace: str = "", *, name: str = "", subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:  # fmt: skip
        """Create `obj`, or (with `name` and `subresource`) post to a subresource, as `token`."""
        return _decode(await self.request("POST", resource.path(namespace, name, subresource), body=obj), as_)

    async def replace(
        self, resource: Resource, obj: object, name: str, namespace: str = "", *, subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:  # fmt: skip
        """PUT; with a resourceVersion in `obj`, ConflictError where the object changed since."""
        return _decode(await self.request("PUT", resource.path(namespace, name, subresource), body=obj), as_)

    async def patch(
        self,
        resource: Resource,
        patch: object,
        name: str,
        namespace: str = "",
        *,
        type_: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        query = {"fieldManager": field_manager, "force": "true" if force else ""}
        path = resource.path(namespace, name, subresource)
        return _decode(await self.request("PATCH", path, query=query, body=patch, content_type=type_), as_)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = "", propagation: str = ""
    ) -> None:
        """Delete; with `uid`, only that very object (ConflictError for a namesake). `propagation` is Background,
        Foreground or Orphan."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        await self.request("DELETE", resource.path(namespace, name), body=options)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        initial_events: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        server_timeout: int = 300,
        idle_timeout: float = 90.0,
        heard: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after `resource_version`, until the server ends the watch (after `server_timeout` seconds).

        With `initial_events`, what is there comes first, as ADDED, and a bookmark that `ends_initial_events` after
        it; an empty `resource_version` asks for the latest state. InvalidError where the server offers no such list.

        Bookmarks are asked for. `idle_timeout` seconds without a byte end in an UnreachableError: the connection
        may be dead, though a server whose objects rest may be silent for as long. `heard` is called when the
        server answers and whenever it sends something. GoneError and other ApiErrors come from the answer's
        status or from an ERROR event. A line cut in the middle is an UnreachableError, one that is no event an
        UnreadableError.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(server_timeout),
        }
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
        headers = _headers(_METADATA if metadata_only else _JSON)
        request = Request("GET", resource.path(namespace), query, headers, None, timeout)
        async with self._transport.open(request) as response:
            heard()
            async for event in stream.events(response.content, heard):
                yield event

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> bytes:
        """One request, one answer's bytes. `body` may be anything msgspec or orjson encodes."""
        headers = _headers(accept)
        data = None
        if body is not None:
            data = _encode(body)
            headers["Content-Type"] = content_type
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        return await self._answer(Request(method, path, query or {}, headers, data, timeout))

    async def _answer(self, request: Request) -> bytes:
        async with self._slots, self._transport.open(request) as response:
            return await response.read()


def _headers(accept: str) -> dict[str, str]:
    # uncompressed: the API server would spend more on compressing a list than the network on carrying it, and we
    # would unpack it on the event loop
    return {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "altershield"}


def _encode(body: object) -> bytes:
    return orjson.dumps(body, default=msgspec.to_builtins)


def _decode(data: bytes | msgspec.Raw, as_: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=as_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableError(f"the API server's answer cannot be read: {error}") from error
