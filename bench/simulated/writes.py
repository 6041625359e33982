"""The API of `bench.simulated.api` with writes to single objects.

An object that was written replaces the object that was made. A streamed list has both, the written one last. A list in
pages has the objects of the start.
"""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonpatch

from altershield.api.change_pod import PodState
from altershield.api.meta import rfc3339
from altershield.api.resources import CHANGE_PODS, LEASES
from bench.simulated.api import Api, event, send
from bench.simulated.shape import Shape

Object = dict[str, Any]

_BOOKMARK_SECONDS = 10.0
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


class FleetApi(Api):
    """The API, with writes to single objects."""

    def __init__(self, shape: Shape, *, lead: bool = True) -> None:
        super().__init__(shape, lead=lead)
        self.traffic = Traffic()
        self.ready: dict[str, float] = {}
        """When each new pod of a release became ready (`time.monotonic()`). A pod is removed when it has its
        verdict."""
        self._written: dict[tuple[str, str, str], Object | None] = {}

    def take(self) -> Traffic:
        """The traffic since the last call."""
        taken, self.traffic = self.traffic, Traffic()
        return taken

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        """An object as it is now."""
        key = (plural, namespace, name)
        if key in self._written:
            return self._written[key]
        number = self._number(plural, name)
        if number is None:
            return None
        made: Object = json.loads(self._objects.maker(plural, metadata_only=False)(number))
        metadata = made["metadata"]
        return made if (metadata["name"], metadata.get("namespace", "")) == (name, namespace) else None

    def store(self, plural: str, obj: Object, type_: str = "MODIFIED") -> Object:
        """Store an object under a new version, and send it to all watches."""
        metadata = obj["metadata"]
        self.send(plural, type_, obj)  # sets the version
        stored = {**obj, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        gone = type_ == "DELETED"
        if gone:
            self.ready.pop(metadata["name"], None)
        self._written[plural, metadata.get("namespace", ""), metadata["name"]] = None if gone else stored
        self.traffic.events += 1
        return stored

    async def bookmark(self) -> None:
        """Send bookmarks with the current version to all watches at intervals, so that no client lists again."""
        while True:
            await asyncio.sleep(_BOOKMARK_SECONDS)
            for plural in self._objects.counts:
                self.send(plural, "BOOKMARK", {"metadata": {}})

    def _written_since(self, plural: str) -> list[bytes]:
        found = [(name, namespace, obj) for (each, namespace, name), obj in self._written.items() if each == plural]
        gone = {"resourceVersion": str(self._version)}
        return [
            event(b"ADDED", json.dumps(obj).encode())
            if obj
            else event(b"DELETED", json.dumps({"metadata": gone | {"name": name, "namespace": namespace}}).encode())
            for name, namespace, obj in found
        ]

    def _number(self, plural: str, name: str) -> int | None:
        found = _WORKLOAD.match(name)
        if plural == "nodes":
            return int(name.rpartition("-")[2])
        if found is None or plural not in self._objects.counts:
            return None
        workload, tail = int(found.group(1)), name.rpartition("-")[2]
        numbers = self._objects.of_workload(plural, workload)
        match plural:
            case "pods":
                pod = _POD.fullmatch(name)
                own = (int(pod.group(1), 16) - 0x10000) // 7919 if pod else -1
            case "changepods":
                own = int(tail) - 1
            case "replicasets":
                make = self._objects.maker(plural, metadata_only=True)
                own = next((own for own, each in enumerate(numbers) if _name(make(each)) == name), -1)
            case _:
                own = 0
        return numbers[own] if 0 <= own < len(numbers) else None

    async def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, accept: str, body: bytes) -> bool:
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        plural, namespace, name, subresource = _parts(url.path)
        verb = {"GET": "get" if name else "watch" if "watch" in query else "list", "PUT": "update"}.get(method, "")
        verb = verb or {"POST": "create", "PATCH": "patch", "DELETE": "delete"}[method]
        self.traffic.by_kind[f"{verb} {plural}{'/' if subresource else ''}{subresource}"] += 1
        one_workload = bool(namespace) and "labelSelector" in query
        if plural == LEASES.plural or verb == "watch" or (verb == "list" and not one_workload):
            return await super()._answer(writer, method, target, accept, body)
        match verb:
            case "list":
                items = self._selected(plural, namespace, query.get("labelSelector", ""))
                metadata = {"resourceVersion": str(self._version)}
                return await send(writer, 200, {"metadata": metadata, "items": items})
            case "create":
                return await self._create(writer, plural, namespace, json.loads(body))
        found = self.find(plural, namespace, name)
        if found is None:
            return await send(writer, 404, _failure(404, "NotFound", f"{plural} {name} not found"))
        match verb:
            case "patch":
                return await self._patch(writer, plural, found, json.loads(body))
            case "delete":
                self.store(plural, found, "DELETED")
        return await send(writer, 200, found)

    def _selected(self, plural: str, namespace: str, selector: str) -> list[Object]:
        """The objects of one workload (`app=NAME`), and written objects with these labels."""
        wanted = dict(each.partition("=")[::2] for each in selector.split(",") if each)
        keys = {key for key in self._written if key[:2] == (plural, namespace)}
        app = _WORKLOAD.fullmatch(wanted.get("app", ""))
        if app and plural in self._objects.counts:
            make = self._objects.maker(plural, metadata_only=True)
            numbers = self._objects.of_workload(plural, int(app.group(1)))
            keys |= {(plural, namespace, _name(make(each))) for each in numbers}
        found = (self.find(*key) for key in sorted(keys))
        return [each for each in found if each and wanted.items() <= (each["metadata"].get("labels") or {}).items()]

    async def _create(self, writer: asyncio.StreamWriter, plural: str, namespace: str, obj: Object) -> bool:
        metadata = obj["metadata"]
        if self.find(plural, namespace, metadata["name"]) is not None:
            return await send(writer, 409, _failure(409, "AlreadyExists", f"{metadata['name']} already exists"))
        metadata |= {"uid": f"{self._version:032x}", "creationTimestamp": now(), "generation": 1}
        metadata["namespace"] = namespace
        return await send(writer, 201, self.store(plural, obj, "ADDED"))

    async def _patch(self, writer: asyncio.StreamWriter, plural: str, found: Object, patch: Any) -> bool:
        if isinstance(patch, list):
            try:
                changed = jsonpatch.apply_patch(found, patch)
            except jsonpatch.JsonPatchException as error:
                return await send(writer, 422, _failure(422, "Invalid", str(error)))
        else:
            version = (patch.get("metadata") or {}).pop("resourceVersion", "")
            if version and version != found["metadata"]["resourceVersion"]:
                return await send(writer, 409, _failure(409, "Conflict", "the object has been modified"))
            changed = _merged(found, patch)
        if plural == CHANGE_PODS.plural and changed["status"].get("status") == PodState.EXECUTE_DONE:
            now = time.monotonic()
            for info in changed["spec"]["podInfos"]:
                if (since := self.ready.pop(info["pod"], None)) is not None:
                    self.traffic.verdicts.append((since, now))
        return await send(writer, 200, self.store(plural, changed))


def _parts(path: str) -> tuple[str, str, str, str]:
    """Resource, namespace, name and subresource of a path."""
    parts = [unquote(each) for each in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    return plural, namespace, name, subresource


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


def _failure(code: int, reason: str, message: str) -> Object:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def now() -> str:
    """The time, as in metadata."""
    return rfc3339(time.time())
