"""Requests to the Kubernetes API: typed objects in and out, one error tree, no retries.

Objects are decoded with msgspec straight from the answer's bytes into the type the caller reads, so nothing
that is not read is kept. Whoever calls decides whether a failed request may be repeated.
"""

import asyncio
import contextlib
import enum
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

import aiohttp
import msgspec
import orjson
from kubernetes_asyncio.client import Configuration

from altershield.api.resources import Resource
from altershield.kube import credentials
from altershield.kube.errors import (
    CODES,
    ApiError,
    KubernetesError,
    UnreachableError,
    UnreadableError,
    code_of,
    from_status,
)

T = TypeVar("T")

_REQUEST_TIMEOUT = 30.0  # seconds; the API server gives up on its own after 60
_CONNECT_TIMEOUT = 5.0
_MAX_RETRY_AFTER = 300.0
_PAGE = 500
_READ_BUFFER = 2**18
_MAX_LINE = 2**26  # bytes of one watch event; etcd takes objects of 1.5 MiB, as JSON they are a few times larger
_MAX_STATUS = 2**20  # bytes of an error's body


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


class WatchEvent(msgspec.Struct):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` is still bytes."""

    type: str
    object: msgspec.Raw


class Client:
    """One connection pool to one API server, used by one event loop. Close it, or use `async with`.

    At most `max_in_flight` requests are under way at once, watches not counted.
    """

    def __init__(self, configuration: Configuration, *, max_in_flight: int = 50) -> None:
        self.configuration = configuration
        """kubernetes-asyncio's: the server, how it is verified, and our credentials."""
        self.errors = dict.fromkeys(CODES, 0)
        """Requests and watches that failed, by `errors.code_of`; a read-only figure for everybody else."""
        self._slots = asyncio.Semaphore(max_in_flight)
        proxy = credentials.proxy(configuration)
        tls = credentials.ssl_context(configuration)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls), proxy=proxy, read_bufsize=_READ_BUFFER
        )

    @classmethod
    async def connect(
        cls, kubeconfig: str | None = None, *, context: str | None = None, max_in_flight: int = 50
    ) -> Self:
        """A client from a kubeconfig file; without one, from the pod's service account, else from the default
        kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError where there is none that can be used."""
        return cls(await credentials.load(kubeconfig, context), max_in_flight=max_in_flight)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.configuration.host)

    async def close(self) -> None:
        await self._session.close()

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
        async for page in self.pages(resource, namespace, label_selector=label_selector, field_selector=field_selector):
            metadata = page.metadata
            items += [_decode(item, as_) for item in page.items]
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
        while True:
            page = _decode(await self.request("GET", resource.path(namespace), query=query, accept=accept), _Page)
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
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        server_timeout: int = 300,
        idle_timeout: float = 90.0,
        heard: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after `resource_version`, until the server ends the watch (after `server_timeout` seconds).

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
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_TIMEOUT, sock_read=idle_timeout)
        accept = _METADATA if metadata_only else _JSON
        async with self._send("GET", resource.path(namespace), query, None, "", accept, timeout) as response:
            heard()
            async for line in _lines(response.content, heard):
                if line.strip():
                    event = _decode(line, WatchEvent)
                    if event.type == "ERROR":
                        raise _error(event.object)
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
        data = None if body is None else _encode(body)
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT, sock_connect=_CONNECT_TIMEOUT)
        async with self._slots, self._send(method, path, query or {}, data, content_type, accept, timeout) as response:
            return await response.read()

    @contextlib.asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        data: bytes | None,
        content_type: str,
        accept: str,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  (handed to aiohttp, which enforces it)
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Accept": accept, "User-Agent": "altershield"}
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            authorization = await self._authorization()
            if authorization:
                headers["Authorization"] = authorization
            async with self._session.request(
                method,
                f"{self.server}{path}",
                params={key: value for key, value in query.items() if value},
                data=data,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self.configuration.tls_server_name,
            ) as response:
                if response.status >= 300:
                    raise from_status(response.status, await _status(response), _retry_after(response))
                yield response
        except KubernetesError as error:
            self.errors[code_of(error)] += 1
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.errors["unreachable"] += 1
            cause = str(error) or type(error).__name__
            raise UnreachableError(
                f"no answer from the API server at {self.server} to {method} {path}: {cause}"
            ) from error

    async def _authorization(self) -> str:
        """The header's value, refreshed where the credentials expire; empty without a token."""
        try:
            return str(await self.configuration.get_api_key_with_prefix("BearerToken") or "").strip()
        except Exception as error:  # whatever a token file or an exec plugin may lead to
            raise UnreachableError(f"the credentials for {self.server} cannot be renewed: {error}") from error


def _encode(body: object) -> bytes:
    return orjson.dumps(body, default=msgspec.to_builtins)


def _decode(data: bytes | msgspec.Raw, as_: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=as_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableError(f"the API server's answer cannot be read: {error}") from error


def _error(data: msgspec.Raw) -> ApiError:
    """The error that an ERROR event carries as a Status."""
    try:
        status = msgspec.json.decode(data, type=dict)
    except (msgspec.DecodeError, RecursionError):
        status = {}
    code = status.get("code")
    return from_status(code if isinstance(code, int) else 500, status)


async def _lines(content: aiohttp.StreamReader, heard: Callable[[], None]) -> AsyncIterator[bytes]:
    """The lines of a stream, each chunk looked at once however long a line is."""
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        heard()
        end, *following = chunk.split(b"\n")
        parts.append(end)
        size += len(end)
        for start in following:
            yield b"".join(parts)
            parts, size = [start], len(start)
        if size > _MAX_LINE:
            raise UnreadableError(f"a watch event is larger than {_MAX_LINE >> 20} MiB")
    if size:
        raise UnreachableError("the watch was cut in the middle of an event")


async def _status(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The Status of an error's body, or what stands there instead as its message."""
    data = bytearray()
    while len(data) < _MAX_STATUS and (chunk := await response.content.readany()):
        data += chunk
    try:
        status = json.loads(data)
    except (ValueError, RecursionError):
        return {"message": data[:256].decode(errors="replace")}
    return status if isinstance(status, dict) else {}


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    value = response.headers.get("Retry-After", "")
    return min(float(value), _MAX_RETRY_AFTER) if value.isascii() and value.isdigit() else None
