"""The API of the simulated cluster: lists, watches, the Lease, and writes to single objects.

An object that was written replaces the object that was made. A streamed list has both, the written one last. A list in
pages has the objects of the start.
"""

import asyncio
import contextlib
import datetime
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from altershield.api import names
from altershield.api.change_pod import PodState
from altershield.api.resources import CHANGE_PODS
from bench.simulated.http import Request, begin_watch, event, refuse, requests, send, send_bytes
from bench.simulated.objects import Objects
from bench.simulated.shape import Shape
from kube_base.resources import LEASES
from kube_base.times import rfc3339

Object = dict[str, Any]

_BOOKMARK_SECONDS = 10.0
_SENT = 256 * 1024  # bytes that are written at a time, approximately
_WORKLOAD = re.compile(r"checkout-frontend-(\d+)")
_POD = re.compile(r"checkout-frontend-\d+-[0-9a-f]+-([0-9a-f]{5,})")


@dataclass
class Traffic:
    """The requests to the API and to the gatekeeper, and the events of watches."""

    by_kind: Counter[str] = field(default_factory=Counter)
    """By verb and resource, such as `patch changepods/status`."""
    admissions: list[float] = field(default_factory=list)
    """Seconds from sending a review to its response."""
    verdicts: list[tuple[float, float]] = field(default_factory=list)
    """For each pod of a release: when it became ready, and when the status of its batch said that it is done
    (`time.monotonic()`)."""
    denied: int = 0
    events: int = 0
    """Events that were sent to watches."""


class Api:
    """The API. While `lead` is True a reconciler can take the Lease; otherwise another holder has it."""

    def __init__(self, shape: Shape, *, lead: bool) -> None:
        self.shape = shape
        self.objects = Objects(shape)
        self.listed = 0
        """Number of lists that were sent completely."""
        self.lead = lead
        self.taken: float | None = None
        """When the Lease was taken (`time.monotonic()`)."""
        self.traffic = Traffic()
        self.ready: dict[str, float] = {}
        """When each new pod of a release became ready (`time.monotonic()`). A pod is removed when it has its
        verdict."""
        self._lease: Object = {"metadata": {"name": names.LEASE, "resourceVersion": "1"}, "spec": {}}
        self._version = 900_000_000
        self._watches: set[tuple[str, asyncio.StreamWriter]] = set()
        self._streams: dict[tuple[str, bool], list[bytes]] = {}
        self._written: dict[tuple[str, str, str], Object | None] = {}
        self._tokens = 0
        self._left: dict[str, list[Object]] = {}
        """What is left of lists with a selector, by the value of `continue`."""

    def take(self) -> Traffic:
        """The traffic since the last call."""
        taken, self.traffic = self.traffic, Traffic()
        return taken

    def prepare(self) -> None:
        """Create the streamed lists in advance, so that this takes no time of a measurement."""
        for plural in self.objects.counts:
            self._blocks(plural, plural in ("replicasets", "customresourcedefinitions"))
        if self.shape.budgets:
            self._blocks("replicasets", False)  # the caches of budgets list whole ReplicaSets

    def forget(self) -> int:
        """Close all watches, and let all versions expire, so that clients must list again. Returns how many they
        were."""
        self._version += 1000
        for _, writer in self._watches:
            writer.close()
        closed = len(self._watches)
        self._watches.clear()
        return closed

    def send(self, plural: str, type_: str, obj: Mapping[str, Any]) -> Object:
        """Send an event to all watches of a resource. Returns the object with its new version."""
        self._version += 1
        shown = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        sent = event(type_.encode(), json.dumps(shown).encode())
        for watched, writer in self._watches:
            if watched == plural:
                writer.write(sent)
        return shown

    async def bookmark(self) -> None:
        """Send bookmarks with the current version to all watches at intervals, so that no client lists again."""
        while True:
            await asyncio.sleep(_BOOKMARK_SECONDS)
            for plural in self.objects.counts:
                self.send(plural, "BOOKMARK", {"metadata": {}})

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        """An object as it is now."""
        key = (plural, namespace, name)
        if key in self._written:
            return self._written[key]
        number = self._number(plural, name)
        if number is None:
            return None
        made: Object = json.loads(self.objects.maker(plural, metadata_only=False)(number))
        metadata = made["metadata"]
        return made if (metadata["name"], metadata.get("namespace", "")) == (name, namespace) else None

    def store(self, plural: str, obj: Object, type_: str = "MODIFIED") -> Object:
        """Store an object under a new version, and send it to all watches."""
        stored, metadata = self.send(plural, type_, obj), obj["metadata"]
        gone = type_ == "DELETED"
        if gone:
            self.ready.pop(metadata["name"], None)
        self._written[plural, metadata.get("namespace", ""), metadata["name"]] = None if gone else stored
        self.traffic.events += 1
        return stored

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
            async for request in requests(reader):
                kind = f"{request.plural}/{request.subresource}" if request.subresource else request.plural
                self.traffic.by_kind[f"{request.verb} {kind}"] += 1
                await self._answer(writer, request)
                if request.verb == "watch":
                    return
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._watches = {each for each in self._watches if each[1] is not writer}
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, request: Request) -> None:
        plural, namespace, name = request.plural, request.namespace, request.name
        match request.verb:
            case _ if plural == LEASES.plural:
                return await self._answer_lease(writer, request)
            case "list" | "watch" if plural not in self.objects.counts:
                return await refuse(writer, 404, "NotFound", f"there are no {plural}")
            case "watch":
                return await self._watch(writer, request)
            case "list" if namespace and "labelSelector" in request.query:
                return await self._selection(writer, request)
            case "list":
                return await self._page(writer, request)
            case "create":
                return await self._create(writer, plural, namespace, json.loads(request.body))
        found = self.find(plural, namespace, name)
        if found is None:
            return await refuse(writer, 404, "NotFound", f"{plural} {name} not found")
        if request.verb == "patch":
            return await self._patch(writer, plural, found, json.loads(request.body))
        if request.verb == "delete":
            self.store(plural, found, "DELETED")
        return await send(writer, 200, found)

    async def _answer_lease(self, writer: asyncio.StreamWriter, request: Request) -> None:
        if not self.lead:
            now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
            return await send(writer, 200, self._lease | {"spec": spec})
        if request.verb in ("create", "update"):
            self._version += 1
            self.taken = self.taken or time.monotonic()
            self._lease = json.loads(request.body)
            self._lease["metadata"]["resourceVersion"] = str(self._version)
        return await send(writer, 200, self._lease)

    async def _page(self, writer: asyncio.StreamWriter, request: Request) -> None:
        numbers = self.objects.numbers(request.plural, request.namespace)
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", len(numbers)))
        end = min(start + limit, len(numbers))
        metadata = {"resourceVersion": str(self._version)} | ({"continue": str(end)} if end < len(numbers) else {})
        make = self.objects.maker(request.plural, metadata_only=request.metadata_only)
        items = b",".join(make(number) for number in numbers[start:end])
        await send_bytes(writer, 200, b'{"metadata":%s,"items":[%s]}' % (json.dumps(metadata).encode(), items))
        self.listed += end == len(numbers)

    async def _selection(self, writer: asyncio.StreamWriter, request: Request) -> None:
        """The next objects of a list with a label selector."""
        token = request.query.get("continue", "")
        selector = request.query["labelSelector"]
        items = self._left.pop(token) if token else self._selected(request.plural, request.namespace, selector)
        limit = int(request.query.get("limit", len(items)))
        metadata = {"resourceVersion": str(self._version)}
        if len(items) > limit:
            self._tokens += 1
            metadata["continue"] = str(self._tokens)
            self._left[metadata["continue"]] = items[limit:]
        await send(writer, 200, {"metadata": metadata, "items": items[:limit]})

    def _blocks(self, plural: str, metadata_only: bool) -> list[bytes]:
        found = self._streams.get((plural, metadata_only))
        if found is None:
            found, parts, size = [], list[bytes](), 0
            make = self.objects.maker(plural, metadata_only=metadata_only)
            for number in self.objects.numbers(plural, ""):
                parts.append(event(b"ADDED", make(number)))
                size += len(parts[-1])
                if size > _SENT:
                    found.append(b"".join(parts))
                    parts, size = [], 0
            found.append(b"".join(parts))
            self._streams[plural, metadata_only] = found
        return found

    def _written_since(self, plural: str) -> list[bytes]:
        """Events about the objects that were written since the start."""
        gone = {"resourceVersion": str(self._version)}
        return [
            event(b"ADDED", json.dumps(obj).encode())
            if obj
            else event(b"DELETED", json.dumps({"metadata": gone | {"name": name, "namespace": namespace}}).encode())
            for (each, namespace, name), obj in self._written.items()
            if each == plural
        ]

    async def _watch(self, writer: asyncio.StreamWriter, request: Request) -> None:
        plural, listing = request.plural, request.query.get("sendInitialEvents") == "true"
        if not listing and int(request.query["resourceVersion"]) < self._version - 500:
            return await refuse(writer, 410, "Expired", "old")
        begin_watch(writer)
        watch = (plural, writer)
        if listing:
            for block in self._blocks(plural, request.metadata_only):
                writer.write(block)
                await writer.drain()
            # what is stored from here on is sent to the watch
            version = str(self._version).encode()
            mark = b'{"metadata":{"resourceVersion":"%s","annotations":{"k8s.io/initial-events-end":"true"}}}' % version
            writer.write(b"".join((*self._written_since(plural), event(b"BOOKMARK", mark))))
            self._watches.add(watch)
            await writer.drain()
            self.listed += 1
        else:
            self._watches.add(watch)
        while watch in self._watches:
            if writer.transport.is_closing():
                self._watches.discard(watch)
            await asyncio.sleep(0.05)
        return None

    def _number(self, plural: str, name: str) -> int | None:
        found = _WORKLOAD.match(name)
        if plural == "nodes":
            return int(name.rpartition("-")[2])
        if found is None or not self.objects.counts.get(plural):
            return None
        workload, tail = int(found.group(1)), name.rpartition("-")[2]
        numbers = self.objects.of_workload(plural, workload)
        match plural:
            case "pods":
                pod = _POD.fullmatch(name)
                own = (int(pod.group(1), 16) - 0x10000) // 7919 if pod else -1
            case "changepods":
                own = int(tail) - 1
            case "replicasets":
                make = self.objects.maker(plural, metadata_only=True)
                own = next((own for own, each in enumerate(numbers) if _name(make(each)) == name), -1)
            case _:
                own = 0
        return numbers[own] if 0 <= own < len(numbers) else None

    def _selected(self, plural: str, namespace: str, selector: str) -> list[Object]:
        """The objects of one workload (`app=NAME`), and written objects with these labels."""
        wanted = dict(each.partition("=")[::2] for each in selector.split(",") if each)
        keys = {key for key in self._written if key[:2] == (plural, namespace)}
        app = _WORKLOAD.fullmatch(wanted.get("app", ""))
        if app and plural in self.objects.counts:
            make = self.objects.maker(plural, metadata_only=True)
            numbers = self.objects.of_workload(plural, int(app.group(1)))
            keys |= {(plural, namespace, _name(make(each))) for each in numbers}
        found = (self.find(*key) for key in sorted(keys))
        return [each for each in found if each and wanted.items() <= (each["metadata"].get("labels") or {}).items()]

    async def _create(self, writer: asyncio.StreamWriter, plural: str, namespace: str, obj: Object) -> None:
        metadata = obj["metadata"]
        if self.find(plural, namespace, metadata["name"]) is not None:
            return await refuse(writer, 409, "AlreadyExists", f"{metadata['name']} already exists")
        metadata |= {"uid": f"{self._version:032x}", "creationTimestamp": now(), "generation": 1}
        metadata["namespace"] = namespace
        return await send(writer, 201, self.store(plural, obj, "ADDED"))

    async def _patch(self, writer: asyncio.StreamWriter, plural: str, found: Object, patch: Any) -> None:
        if isinstance(patch, list):
            try:
                changed = jsonpatch.apply_patch(found, patch)
            except jsonpatch.JsonPatchException as error:
                return await refuse(writer, 422, "Invalid", str(error))
        else:
            version = (patch.get("metadata") or {}).pop("resourceVersion", "")
            if version and version != found["metadata"]["resourceVersion"]:
                return await refuse(writer, 409, "Conflict", "the object has been modified")
            changed = _merged(found, patch)
        if plural == CHANGE_PODS.plural and changed["status"].get("status") == PodState.EXECUTE_DONE:
            judged = time.monotonic()
            for info in changed["spec"]["podInfos"]:
                if (since := self.ready.pop(info["pod"], None)) is not None:
                    self.traffic.verdicts.append((since, judged))
        return await send(writer, 200, self.store(plural, changed))


def _name(encoded: bytes) -> str:
    return str(json.loads(encoded)["metadata"]["name"])


def _merged(old: Any, patch: Any) -> Any:
    """The object after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def now() -> str:
    """The time, as in metadata."""
    return rfc3339(time.time())
