"""HTTP for the simulated API: one connection, read and answered without a framework, because lists have gigabytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Request:
    """A request. `plural`, `namespace`, `name` and `subresource` are parts of its path, or empty."""

    verb: str
    """As in Kubernetes: get, list, watch, create, update, patch or delete."""
    plural: str
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    metadata_only: bool
    body: bytes


async def requests(reader: asyncio.StreamReader) -> AsyncIterator[Request]:
    """The requests of a connection, until the client closes it."""
    while True:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        method, target, _ = first.split(" ", 2)
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        plural, namespace, name, subresource = _parts(url.path)
        verb = _VERBS.get(method) or ("get" if name else "watch" if "watch" in query else "list")
        metadata_only = "as=PartialObjectMetadata" in headers.get("accept", "")
        yield Request(verb, plural, namespace, name, subresource, query, metadata_only, body)


def _parts(path: str) -> tuple[str, str, str, str]:
    """Resource, namespace, name and subresource of a path."""
    parts = [unquote(each) for each in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    return plural, namespace, name, subresource


async def send(writer: asyncio.StreamWriter, status: int, obj: Mapping[str, Any]) -> None:
    await send_bytes(writer, status, json.dumps(obj).encode())


async def send_bytes(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode())
    writer.write(body)
    await writer.drain()


async def refuse(writer: asyncio.StreamWriter, code: int, reason: str, message: str) -> None:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    await send(writer, code, status)


def begin_watch(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )


def event(type_: bytes, obj: bytes) -> bytes:
    """An event of a watch, as the chunk that an API server sends."""
    data = b'{"type":"%s","object":%s}\n' % (type_, obj)
    return b"%x\r\n%s\r\n" % (len(data), data)
