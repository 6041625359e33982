"""Requests to the Kubernetes API: typed objects in and out, one error tree, no retries.

Credentials, TLS and connections are kubernetes-asyncio's; objects are decoded here with msgspec straight from
the answer's bytes into the type the caller reads, so nothing that is not read is kept. Whoever calls decides
whether a failed request may be repeated.
"""

import asyncio
import contextlib
import enum
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import aiohttp
import msgspec
import orjson
from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import incluster_config

from altershield.api.resources import Resource
from altershield.errors import UsageError
from altershield.kube.errors import UnreachableError, from_status

T = TypeVar("T")

_REQUEST_TIMEOUT = 30.0  # seconds; the API server gives up on its own after 60
_CONNECT_TIMEOUT = 5.0
_PAGE = 500


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """One list answer; `metadata.resource_version` is where a watch goes on from."""

    metadata: _ListMeta
    items: list[T]


class WatchEvent(msgspec.Struct):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; `object` is still bytes."""

    type: str
    object: msgspec.Raw


class Client:
    """One connection pool to one API server, used by one event loop. Close it, or use `async with`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._session: aiohttp.ClientSession = api.rest_client.pool_manager

    @classmethod
    async def connect(
        cls, kubeconfig: str | None = None, *, context: str | None = None, qps: int = 50
    ) -> Self:
        """A client from a kubeconfig file; without one, from the pod's service account, else from the default
        kubeconfig ($KUBECONFIG, ~/.kube/config). `qps` bounds the requests in flight."""
        configuration = Configuration()
        try:
            if kubeconfig is None and _in_cluster():
                kube_config.load_incluster_config(client_configuration=configuration)
            else:
                await kube_config.load_kube_config(
                    config_file=kubeconfig, context=context, client_configuration=configuration
                )
        except (kube_config.ConfigException, OSError, TypeError) as error:
            raise UsageError(
                f"no usable kubeconfig at {kubeconfig or 'the default place'}: {error}; name one with --kubeconfig"
            ) from error
        configuration.connection_pool_maxsize = qps
        return cls(ApiClient(configuration))

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self._api.configuration.host)

    @property
    def api_client(self) -> ApiClient:
        """The kubernetes-asyncio client underneath, for its leader election."""
        return self._api

    async def close(self) -> None:
        await self._api.close()

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
        items: list[T] = []
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(_PAGE)}
        while True:
            page = _decode(
                await self.request("GET", resource.path(namespace), query=query),
                ObjectList[as_],  # type: ignore[valid-type]
            )
            items += page.items
            if not page.metadata.continue_:
                return ObjectList(metadata=page.metadata, items=items)
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
        server_timeout: int = 300,
        idle_timeout: float = 90.0,
    ) -> AsyncIterator[WatchEvent]:
        """Events after `resource_version`, until the server ends the watch (after `server_timeout` seconds).

        Bookmarks are asked for; the server sends one about every minute, so `idle_timeout` seconds without a
        byte mean a dead connection (UnreachableError). GoneError and other ApiErrors come from the answer's
        status; an ERROR event is handed on as it is. A line cut in the middle is an UnreachableError.
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
        decoder = msgspec.json.Decoder(WatchEvent)
        async with self._send("GET", resource.path(namespace), query, None, "", timeout) as response:
            buffer = bytearray()
            async for chunk in response.content.iter_any():
                buffer += chunk
                *lines, rest = bytes(buffer).split(b"\n") if b"\n" in chunk else [bytes(buffer)]
                if not lines:
                    continue
                buffer = bytearray(rest)
                for line in lines:
                    if line.strip():
                        yield _decode_line(decoder, line)
            if buffer.strip():
                raise UnreachableError(f"the watch on {resource.plural} was cut in the middle of a line")

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> bytes:
        """One request, one answer's bytes. `body` may be anything msgspec or orjson encodes."""
        data = None if body is None else _encode(body)
        timeout = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT, sock_connect=_CONNECT_TIMEOUT)
        async with self._send(method, path, query or {}, data, content_type, timeout) as response:
            return await response.read()

    @contextlib.asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        data: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  (handed to aiohttp, which enforces it)
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Accept": "application/json", "User-Agent": "altershield"}
        if data is not None:
            headers["Content-Type"] = content_type
        api = self._api
        extra: dict[str, Any] = {}
        if api.configuration.tls_server_name:
            extra["server_hostname"] = api.configuration.tls_server_name
        if api.configuration.proxy:
            extra["proxy"] = api.configuration.proxy
        try:
            # fills in the bearer token, refreshing it where the credentials expire
            await api.update_params_for_auth(headers, [], ["BearerToken"])
            async with self._session.request(
                method,
                f"{self.server}{path}",
                params={key: value for key, value in query.items() if value},
                data=data,
                headers=headers,
                timeout=timeout,
                **extra,
            ) as response:
                if response.status >= 300:
                    raise from_status(response.status, _status(await response.read()), _retry_after(response))
                yield response
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise UnreachableError(
                f"no answer from the API server at {self.server} to {method} {path}: {error or type(error).__name__}"
            ) from error


def _in_cluster() -> bool:
    return Path(incluster_config.SERVICE_TOKEN_FILENAME).exists()


def _encode(body: object) -> bytes:
    return orjson.dumps(body, default=msgspec.to_builtins)


def _decode(data: bytes, as_: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=as_)
    except msgspec.DecodeError as error:
        raise UnreachableError(f"the API server's answer cannot be read: {error}") from error


def _decode_line(decoder: msgspec.json.Decoder[WatchEvent], line: bytes) -> WatchEvent:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        raise UnreachableError(f"a watch event cannot be read: {error}") from error


def _status(data: bytes) -> dict[str, Any]:
    try:
        status = json.loads(data)
    except ValueError:
        return {"message": data[:256].decode(errors="replace")}
    return status if isinstance(status, dict) else {}


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None
