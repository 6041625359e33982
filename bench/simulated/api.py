"""The API of the simulated cluster: lists, watches and the Lease. All other writes are refused."""

import asyncio
import contextlib
import datetime
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from altershield.api import names
from bench.simulated.objects import Objects
from bench.simulated.shape import Shape

_SENT = 256 * 1024  # bytes that are written at a time, approximately


class Api:
    """The API, with paged lists, streamed lists and watches. While `lead` is True a reconciler can take the Lease;
    otherwise another holder has it."""

    def __init__(self, shape: Shape, *, lead: bool = False) -> None:
        self.shape = shape
        self.listed = 0
        """Number of lists that were sent completely."""
        self.lead = lead
        self.taken: float | None = None
        """When the Lease was taken (`time.monotonic()`)."""
        self._lease: dict[str, Any] = {"metadata": {"name": names.LEASE, "resourceVersion": "1"}, "spec": {}}
        self._version = 900_000_000
        self._watches: set[tuple[str, asyncio.StreamWriter]] = set()
        self._objects = Objects(shape)
        self._streams: dict[tuple[str, bool], list[bytes]] = {}

    def forget(self) -> None:
        """Close all watches, and let all versions expire, so that clients must list again."""
        self._version += 1000
        for _, writer in self._watches:
            writer.close()
        self._watches.clear()

    def send(self, plural: str, type_: str, obj: Mapping[str, Any]) -> None:
        """Send an event to all watches of a resource."""
        self._version += 1
        shown = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        sent = _chunk(event(type_.encode(), json.dumps(shown).encode()))
        for watched, writer in self._watches:
            if watched == plural:
                writer.write(sent)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**20)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            self.forget()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split(" ", 2)
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                if not await self._answer(writer, method, target, headers.get("accept", ""), body):
                    return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._watches = {each for each in self._watches if each[1] is not writer}
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, accept: str, body: bytes) -> bool:
        """Answer a request. False if the connection must be closed."""
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        path = url.path.rstrip("/")
        plural = path.rpartition("/")[2]
        if "/leases" in path:
            return await self._answer_lease(writer, method, body)
        if method != "GET" or plural not in self._objects.counts:
            return await send(writer, 403, {"kind": "Status", "code": 403, "message": "this API is read-only"})
        metadata_only = "as=PartialObjectMetadata" in accept
        namespace = path.rpartition("/namespaces/")[2].partition("/")[0] if "/namespaces/" in path else ""
        if "watch" in query:
            return await self._watch(writer, plural, query, metadata_only)
        return await self._page(writer, plural, namespace, query, metadata_only)

    async def _answer_lease(self, writer: asyncio.StreamWriter, method: str, body: bytes) -> bool:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if not self.lead:
            spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
            return await send(writer, 200, self._lease | {"spec": spec})
        if method in ("POST", "PUT"):
            self._version += 1
            self.taken = self.taken or time.monotonic()
            self._lease = json.loads(body)
            self._lease["metadata"]["resourceVersion"] = str(self._version)
        return await send(writer, 200, self._lease)

    async def _page(
        self, writer: asyncio.StreamWriter, plural: str, namespace: str, query: Mapping[str, str], metadata_only: bool
    ) -> bool:
        numbers = self._objects.numbers(plural, namespace)
        start, limit = int(query.get("continue", 0)), int(query.get("limit", len(numbers)))
        if query.get("labelSelector", "").startswith("app="):
            numbers = range(0)
        end = min(start + limit, len(numbers))
        metadata = {"resourceVersion": str(self._version)} | ({"continue": str(end)} if end < len(numbers) else {})
        make = self._objects.maker(plural, metadata_only=metadata_only)
        items = b",".join(make(number) for number in numbers[start:end])
        answer = b'{"metadata":%s,"items":[%s]}' % (json.dumps(metadata).encode(), items)
        await _send_bytes(writer, 200, answer)
        self.listed += end == len(numbers)
        return True

    def prepare(self) -> None:
        """Create the streamed lists in advance, so that this takes no time of a measurement."""
        for plural in self._objects.counts:
            self._blocks(plural, plural in ("replicasets", "customresourcedefinitions"))
        if self.shape.budgets:
            self._blocks("replicasets", False)  # the caches of budgets list whole ReplicaSets

    def _blocks(self, plural: str, metadata_only: bool) -> list[bytes]:
        found = self._streams.get((plural, metadata_only))
        if found is None:
            found, parts, size = [], list[bytes](), 0
            make = self._objects.maker(plural, metadata_only=metadata_only)
            for number in self._objects.numbers(plural, ""):
                parts.append(_chunk(event(b"ADDED", make(number))))  # a chunk for each, as the API server does
                size += len(parts[-1])
                if size > _SENT:
                    found.append(b"".join(parts))
                    parts, size = [], 0
            found.append(b"".join(parts))
            self._streams[plural, metadata_only] = found
        return found

    def _written_since(self, plural: str) -> list[bytes]:
        """Events about the objects that were written since the start. This API is read-only."""
        return []

    async def _watch(
        self, writer: asyncio.StreamWriter, plural: str, query: Mapping[str, str], metadata_only: bool
    ) -> bool:
        listing = query.get("sendInitialEvents") == "true"
        if not listing and int(query["resourceVersion"]) < self._version - 500:
            return await send(writer, 410, {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: close\r\n\r\n"
        )
        if listing:
            version = str(self._version).encode()
            written = [_chunk(each) for each in self._written_since(plural)]
            for block in (*self._blocks(plural, metadata_only), *written):
                writer.write(block)
                await writer.drain()
            mark = b'{"metadata":{"resourceVersion":"%s","annotations":{"k8s.io/initial-events-end":"true"}}}' % version
            writer.write(_chunk(event(b"BOOKMARK", mark)))
            await writer.drain()
            self.listed += 1
        watch = (plural, writer)
        self._watches.add(watch)
        while watch in self._watches:
            if writer.transport.is_closing():
                self._watches.discard(watch)
            await asyncio.sleep(0.05)
        return False


def event(type_: bytes, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_, obj)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def send(writer: asyncio.StreamWriter, status: int, obj: Mapping[str, Any]) -> bool:
    return await _send_bytes(writer, status, json.dumps(obj).encode())


async def _send_bytes(writer: asyncio.StreamWriter, status: int, body: bytes) -> bool:
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode())
    writer.write(body)
    await writer.drain()
    return True
