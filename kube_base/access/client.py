"""A client for the Kubernetes API: typed objects, one error tree, no retries.

The caller decides whether to repeat a failed request.
"""

import asyncio
import enum
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from kube_base.access import credentials, watch_stream
from kube_base.access.authentication import Authentication
from kube_base.access.bodies import ListMeta, ObjectList, Page, decode, encode
from kube_base.access.configuration import Configuration
from kube_base.access.errors import CODES
from kube_base.access.time_slices import time_slices
from kube_base.access.transport import CONNECT_TIMEOUT, Request, Send, Transport
from kube_base.access.watch_stream import WatchEvent
from kube_base.resources import Resource

T = TypeVar("T")

_REQUEST_TIMEOUT = 30.0  # seconds; the API server gives up after 60
_MAX_LISTS = 2
_LIST_TIMEOUT = 300.0  # seconds for a whole response: an API server may ignore the limit and send all objects
_PAGE = 2000  # objects; to split a page of 20 KB objects blocks the event loop for 10 ms

_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Client:
    """A client with one connection pool, for one event loop. Close it, or use `async with`.

    It sends at most `max_in_flight` requests at the same time; watches do not count. API servers take the beginning of
    `user_agent` as the manager of the fields that the client writes. `send`: see `Transport`.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        max_in_flight: int = 50,
        streaming_lists: bool = True,
        user_agent: str = "altershield",
        send: Send | None = None,
    ) -> None:
        self.configuration = configuration
        """The server, how to verify it, and the client's credentials."""
        self.namespace = credentials.DEFAULT_NAMESPACE
        """The default namespace: that of the kubeconfig's context, or that of the pod."""
        self.errors = dict.fromkeys(CODES, 0)
        """The number of failed requests and watches, by `errors.code_of`. Read-only for other modules."""
        self.streaming_lists = streaming_lists
        """Whether informers ask for streamed lists if the API server supports them."""
        self._user_agent = user_agent
        self._open(Authentication(configuration), max_in_flight, send)

    def _open(self, authentication: Authentication, max_in_flight: int, send: Send | None = None) -> None:
        self._authentication = authentication
        self._slots = asyncio.Semaphore(max_in_flight)
        self.lists = asyncio.Semaphore(_MAX_LISTS)
        """Limits the complete lists of informers at the same time. Each list needs memory for the keys of all
        objects."""
        self._transport = Transport(authentication, self.errors, send)

    def with_own_connections(self, *, max_in_flight: int = 4) -> "Client":
        """A second client with the same server and credentials, but with its own connections and its own limit, for
        requests that must not wait for other requests. Close it too. Its errors count in `errors` of this client."""
        client = object.__new__(Client)
        client.configuration = self.configuration
        client.namespace = self.namespace
        client.errors = self.errors
        client.streaming_lists = self.streaming_lists
        client._user_agent = self._user_agent
        client._open(self._authentication, max_in_flight)
        return client

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        *,
        context: str | None = None,
        max_in_flight: int = 50,
        user_agent: str = "altershield",
        send: Send | None = None,
    ) -> Self:
        """A client with the credentials of `kubeconfig`. Without `kubeconfig`: those of the pod's service account (if
        `context` is None), else of the default kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError if none can be
        used."""
        config = await credentials.load(kubeconfig, context)
        client = cls(config.configuration, max_in_flight=max_in_flight, user_agent=user_agent, send=send)
        client.namespace = config.namespace
        return client

    def on_date(self, callback: Callable[[str, float], None]) -> None:
        """Call `callback` about once a second with the header Date of a response, and the seconds that the response
        took."""
        self._transport.on_date = callback

    def on_warning(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with each warning of a response, before an error of this response is raised."""
        self._transport.on_warning = callback

    def add_headers(self, headers_of: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        """Send these headers too, with each request of the method, such as GET."""
        self._transport.headers_of = headers_of

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

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: type[T] = dict) -> T:  # type: ignore[assignment]  # a dict by default
        return decode(await self.request("GET", resource.path(namespace, name)), as_)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        as_: type[T] = dict,  # type: ignore[assignment]
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
    ) -> ObjectList[T]:
        """All objects. They are read in pages of one consistent snapshot, at most `limit` in each."""
        metadata = ListMeta("")
        items: list[T] = []
        slices = time_slices()
        pages = self.pages(
            resource, namespace, label_selector=label_selector, field_selector=field_selector, limit=limit
        )
        async for page in pages:
            metadata = page.metadata
            for item in page.items:
                items.append(decode(item, as_))
                await slices.yield_if_over()
        return ObjectList(metadata, items)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        limit: int = 0,
    ) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        """The pages of one consistent snapshot, with undecoded items, at most `limit` in each. With `metadata_only`,
        the API server sends only the metadata of each item. GoneError if reading takes longer than the server keeps the
        snapshot (about five minutes)."""
        accept = _METADATA_LIST if metadata_only else _JSON
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(limit or _PAGE)}
        timeout = aiohttp.ClientTimeout(_LIST_TIMEOUT, sock_connect=CONNECT_TIMEOUT, sock_read=_REQUEST_TIMEOUT)
        while True:
            request = Request("GET", resource.path(namespace), dict(query), self._headers(accept), None, timeout)
            page = decode(await self._answer(request), Page)
            yield ObjectList(metadata=page.metadata, items=page.items or [])
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def create(
        self, resource: Resource, obj: object, namespace: str = "", *, name: str = "", subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:  # fmt: skip
        """Create `obj`. With `name` and `subresource`: POST to a subresource, for example `token`."""
        return decode(await self.request("POST", resource.path(namespace, name, subresource), body=obj), as_)

    async def replace(
        self, resource: Resource, obj: object, name: str, namespace: str = "", *, subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:  # fmt: skip
        """Replace an object (PUT). ConflictError if `obj` has a resourceVersion and the object has changed since."""
        return decode(await self.request("PUT", resource.path(namespace, name, subresource), body=obj), as_)

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
        dry_run: bool = False,
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        """Patch an object. With `dry_run`: return what the patch would make of it, with what webhooks change."""
        query = {"fieldManager": field_manager, "force": "true" if force else "", "dryRun": "All" if dry_run else ""}
        path = resource.path(namespace, name, subresource)
        return decode(await self.request("PATCH", path, query=query, body=patch, content_type=type_), as_)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace: int | None = None,
    ) -> None:
        """Delete an object. With `uid`: ConflictError if the object of that name has another uid; with
        `resource_version`: if it has changed since. `propagation` is Background, Foreground or Orphan. `grace`: the
        grace period of a pod in seconds."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if any(preconditions.values()):
            options["preconditions"] = {name: value for name, value in preconditions.items() if value}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace is not None:
            options["gracePeriodSeconds"] = grace
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
        on_data: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after `resource_version`, until the server ends the watch (after `server_timeout` seconds).

        With `initial_events`, the existing objects come first as ADDED, then a bookmark with the annotation
        `k8s.io/initial-events-end`. An empty `resource_version` then asks for the latest state. InvalidError if the
        server does not support such a list.

        The watch asks for bookmarks. UnreachableError after `idle_timeout` seconds without data: the connection may be
        dead, although a server also sends nothing for so long if no object changes. `on_data` is called when the
        response begins and whenever data comes. GoneError and other ApiErrors come from the response's status or from
        an ERROR event. An incomplete line is an UnreachableError; a line that is no event is an UnreadableError.
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
        headers = self._headers(_METADATA if metadata_only else _JSON)
        request = Request("GET", resource.path(namespace), query, headers, None, timeout)
        async with self._transport.open(request) as response:
            on_data()
            async for event in watch_stream.events(response.content, on_data):
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
        """Send one request and return the response's body. msgspec or orjson encodes `body`."""
        headers = self._headers(accept)
        data = None
        if body is not None:
            data = encode(body)
            headers["Content-Type"] = content_type
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        return await self._answer(Request(method, path, query or {}, headers, data, timeout))

    async def _answer(self, request: Request) -> bytes:
        async with self._slots:
            return await self._transport.answer(request)

    def _headers(self, accept: str) -> dict[str, str]:
        # No compression: compressing a list costs the API server more than sending it, and decompressing it would block
        # the event loop.
        return {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": self._user_agent}
