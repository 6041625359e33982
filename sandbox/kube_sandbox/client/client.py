"""Requests to the Kubernetes API. Objects are typed; requests are not retried."""

import asyncio
import contextlib
import contextvars
import enum
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

import aiohttp
import msgspec
import orjson
from multidict import CIMultiDict

from kube_sandbox.client import kubeconfig as kubeconfigs
from kube_sandbox.client.errors import UnreachableError, from_status
from kube_sandbox.client.resources import Resource

T = TypeVar("T")

_JSON = "application/json"
_ESCAPED = [(character.encode(), b"\\u%04x" % ord(character)) for character in "<>&\u2028\u2029"]
_IN_FLIGHT = 50  # concurrent requests; watches do not count
_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5)
_WATCH_TIMEOUT = aiohttp.ClientTimeout(sock_connect=5, sock_read=90)
_READ_BUFFER = 2**18


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class ObjectList(msgspec.Struct, Generic[T]):
    """The answer to one list request. A watch may start at `metadata.resource_version`."""

    metadata: _ListMeta
    items: list[T]


class _RawList(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None  # Go encodes a nil slice as null


class WatchEvent(msgspec.Struct):
    """One event of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` is JSON that is not decoded
    yet."""

    type: str
    object: msgspec.Raw


class Impersonated(NamedTuple):
    """A user that the user of the kubeconfig impersonates for writes. Without `groups`, the API server sets the default
    groups."""

    name: str
    groups: tuple[str, ...] = ()


Send = Callable[[str, str, Mapping[str, str], CIMultiDict[str], bytes | None], Awaitable[tuple[int, bytes]]]
"""Sends a request with this method, path, query, these headers and this body. Returns the status and the body of the
response."""

IMPERSONATED: contextvars.ContextVar[Impersonated | None] = contextvars.ContextVar("impersonated", default=None)
"""The user of the writes of this task; None is the user of the kubeconfig. Reads always use the latter."""


class Client:
    """One connection pool to one API server. Close it, or use `async with`. With `send`, requests other than watches do
    not go through the pool: for an API server in this process."""

    def __init__(self, connection: kubeconfigs.Connection, send: Send | None = None) -> None:
        self._send = send or self._over_http
        self.connection = connection
        self._slots = asyncio.Semaphore(_IN_FLIGHT)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=connection.tls), read_bufsize=_READ_BUFFER
        )

    @classmethod
    async def connect(cls, kubeconfig: str, send: Send | None = None) -> Self:
        """A client for the current context of a kubeconfig file. Raises SettingError if the file cannot be used."""
        return cls(await kubeconfigs.load(kubeconfig), send)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self.connection.server

    async def close(self) -> None:
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, resource: Resource, name: str, namespace: str = "", *, as_: type[T] = dict) -> T:  # type: ignore[assignment]  # without `as_` the result is a dict
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
        """All objects that the selectors match, in one answer."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        data = await self.request("GET", resource.path(namespace), query=query)
        found = _decode(data, _RawList)
        return ObjectList(found.metadata, [_decode(item, as_) for item in found.items or ()])

    async def create(
        self, resource: Resource, obj: object, namespace: str = "", *, name: str = "", subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:  # fmt: skip
        """Create `obj`. With `name` and `subresource`: post to that subresource, for example `binding`."""
        return _decode(await self.request("POST", resource.path(namespace, name, subresource), body=obj), as_)

    async def replace(
        self, resource: Resource, obj: object, name: str, namespace: str = "", *, subresource: str = ""
    ) -> dict[str, Any]:
        """Replace the object (PUT). If `obj` has a resourceVersion and the stored object is newer, raises
        ConflictError."""
        return _decode(await self.request("PUT", resource.path(namespace, name, subresource), body=obj), dict)

    async def patch(
        self,
        resource: Resource,
        patch: object,
        name: str,
        namespace: str = "",
        *,
        type_: PatchType = PatchType.MERGE,
        subresource: str = "",
        as_: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        path = resource.path(namespace, name, subresource)
        return _decode(await self.request("PATCH", path, body=patch, content_type=type_), as_)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "",
        grace: int | None = None,
    ) -> None:
        """Delete an object. With `uid`: raises ConflictError if the object of this name has another uid.
        `propagation` is Background, Foreground or Orphan. `grace` is the grace period of a pod in seconds."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
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
        server_timeout: int = 300,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yields the events after `resource_version`, until the server ends the watch after `server_timeout` seconds.

        Raises GoneError or another ApiError, from the status of the response or from an ERROR event. Raises
        UnreachableError if the connection breaks or sends nothing for 90 seconds.
        """
        parameters = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(server_timeout),
            **(query or {}),
        }
        async with self._open(
            "GET",
            resource.path(namespace),
            _without_empty(parameters),
            await self._headers("GET"),
            None,
            _WATCH_TIMEOUT,
        ) as response:
            if response.status >= 300:
                raise from_status(response.status, _status(await response.read()))
            async for line in _lines(response.content):
                event = _decode(line, WatchEvent)
                if event.type == "ERROR":
                    status = _decode(event.object, dict)
                    raise from_status(int(status.get("code") or 500), status)
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
        """Send one request; returns the body of the response. `body` is anything that msgspec or orjson can encode."""
        headers, data = await self._headers(method, accept), None
        if body is not None:
            headers["Content-Type"] = str(content_type)
            data = _encode(body)
        async with self._slots:
            status, answer = await self._send(method, path, _without_empty(query or {}), headers, data)
        if status >= 300:
            raise from_status(status, _status(answer))
        return answer

    async def _headers(self, method: str, accept: str = _JSON) -> CIMultiDict[str]:
        """The headers of each request: the format of the answer, the credentials and the impersonated user."""
        headers: CIMultiDict[str] = CIMultiDict(
            {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "kube-sandbox"}
        )
        if token := await self.connection.authorization():
            headers["Authorization"] = token
        if method != "GET" and (user := IMPERSONATED.get()) is not None:
            headers["Impersonate-User"] = user.name
            for group in user.groups:
                headers.add("Impersonate-Group", group)
        return headers

    async def _over_http(
        self, method: str, path: str, query: Mapping[str, str], headers: CIMultiDict[str], data: bytes | None
    ) -> tuple[int, bytes]:
        async with self._open(method, path, query, headers, data, _TIMEOUT) as response:
            return response.status, await response.read()

    @contextlib.asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: CIMultiDict[str],
        data: bytes | None,
        limits: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method,
                self.server + path,
                params=query,
                data=data,
                headers=headers,
                timeout=limits,
                proxy=self.connection.proxy,
                server_hostname=self.connection.tls_server_name,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            cause = str(error) or type(error).__name__
            raise UnreachableError(
                f"no answer from the API server at {self.server} to {method} {path}: {cause}"
            ) from error


def _without_empty(query: Mapping[str, str]) -> dict[str, str]:
    """The parameters that have a value."""
    return {key: value for key, value in query.items() if value}


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream. Unlike aiohttp's own iterator, it does not limit their length."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        end, *following = chunk.split(b"\n")
        parts.append(end)
        for start in following:
            if line := b"".join(parts):
                yield line
            parts = [start]
    if any(parts):
        raise UnreachableError("the connection of the watch ended in the middle of an event")


def _status(data: bytes) -> dict[str, Any]:
    """The Status in the body of an error response. A body that is not JSON becomes the message of a Status."""
    try:
        status = json.loads(data)
    except ValueError:
        return {"message": data[:256].decode(errors="replace")}
    return status if isinstance(status, dict) else {}


def _encode(body: object) -> bytes:
    """JSON as Go encodes it. kube-apiserver stores `data` of a ControllerRevision as it was sent. If Go would encode
    the data differently, kube-apiserver refuses each later update."""
    data = orjson.dumps(body, default=msgspec.to_builtins, option=orjson.OPT_SORT_KEYS)
    for character, escaped in _ESCAPED:
        data = data.replace(character, escaped)
    return data


def _decode(data: bytes | msgspec.Raw, as_: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=as_)
    except msgspec.DecodeError as error:
        raise UnreachableError(f"the API server's answer cannot be read: {error}") from error
