"""A simulated API of a cluster with the largest size that AlterShield is built for. It supports lists and watches. All
releases have ended.

Objects are as large as real ones: managedFields, 1 KB of annotations, a pod template with twenty environment variables.
Streamed lists are created in advance. They take some GB of memory.
"""

import asyncio
import contextlib
import datetime
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
import yaml

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus, PodState
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, ObjectMeta, plain_time, rfc3339
from altershield.api.ops_config import DEFAULTS
from altershield.api.ops_config_info import OpsConfigInfo, OpsConfigInfoStatus
from altershield.api.pod_verdicts import PodInfo
from altershield.api.resources import CHANGE_WORKLOADS, DEPLOYMENTS, REPLICA_SETS
from altershield.workloads import BY_KIND

REPLICAS = 5
REVISIONS = 11
"""ReplicaSets per Deployment: the present one and ten old ones, the default revisionHistoryLimit."""

FAT = 200
"""Objects of each kind in a namespace that is not governed, each with the largest allowed annotations (256 KB)."""

_RELEASED = int(time.time()) - 3 * 86400
_TIME = rfc3339(_RELEASED)
_SPREAD = 2 * 86400  # seconds over which the releases are spread
_SENT = 256 * 1024  # bytes that are written at a time, approximately

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    deployments: int
    replicas: int = REPLICAS
    revisions: int = REVISIONS
    fat: int = FAT
    namespaces: int = 100
    nodes: int = 100
    budgets: int = 0
    """PodUnavailableBudgets, each for another Deployment."""

    @property
    def pods(self) -> int:
        return self.deployments * self.replicas


class Api:
    """The API, with paged lists, streamed lists and watches. With `lead` a reconciler can take the Lease; otherwise
    another holder has it."""

    def __init__(self, shape: Shape, *, lead: bool = False) -> None:
        self.shape = shape
        self.requests: list[tuple[float, str, str]] = []
        """Time, method and path of all requests, without those for the Lease."""
        self.listed = 0
        """Number of lists that were sent completely."""
        self._lead = lead
        self._lease: dict[str, Any] = {}
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
        event = _event(type_.encode(), json.dumps(shown).encode())
        for watched, writer in self._watches:
            if watched == plural:
                writer.write(_chunk(event))

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
        self.requests.append((time.monotonic(), method, target))
        if method != "GET" or plural not in self._objects.counts:
            return await _send(writer, 403, {"kind": "Status", "code": 403, "message": "this API is read-only"})
        metadata_only = "as=PartialObjectMetadata" in accept
        namespace = path.rpartition("/namespaces/")[2].partition("/")[0] if "/namespaces/" in path else ""
        if "watch" in query:
            return await self._watch(writer, plural, query, metadata_only)
        return await self._page(writer, plural, namespace, query, metadata_only)

    async def _answer_lease(self, writer: asyncio.StreamWriter, method: str, body: bytes) -> bool:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if not self._lead:
            spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now}
            return await _send(writer, 200, {"metadata": {"name": names.LEASE, "resourceVersion": "1"}, "spec": spec})
        if method in ("POST", "PUT"):
            self._version += 1
            self._lease = json.loads(body)
            self._lease["metadata"]["resourceVersion"] = str(self._version)
        if not self._lease:
            return await _send(writer, 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"})
        return await _send(writer, 200, self._lease)

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
                parts.append(_chunk(_event(b"ADDED", make(number))))  # a chunk for each, as the API server does
                size += len(parts[-1])
                if size > _SENT:
                    found.append(b"".join(parts))
                    parts, size = [], 0
            found.append(b"".join(parts))
            self._streams[plural, metadata_only] = found
        return found

    async def _watch(
        self, writer: asyncio.StreamWriter, plural: str, query: Mapping[str, str], metadata_only: bool
    ) -> bool:
        listing = query.get("sendInitialEvents") == "true"
        if not listing and int(query["resourceVersion"]) < self._version - 500:
            return await _send(writer, 410, {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: close\r\n\r\n"
        )
        if listing:
            version = str(self._version).encode()
            for block in self._blocks(plural, metadata_only):
                writer.write(block)
                await writer.drain()
            mark = b'{"metadata":{"resourceVersion":"%s","annotations":{"k8s.io/initial-events-end":"true"}}}' % version
            writer.write(_chunk(_event(b"BOOKMARK", mark)))
            await writer.drain()
            self.listed += 1
        watch = (plural, writer)
        self._watches.add(watch)
        while watch in self._watches:
            if writer.transport.is_closing():
                self._watches.discard(watch)
            await asyncio.sleep(0.05)
        return False


def _event(type_: bytes, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_, obj)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def _send(writer: asyncio.StreamWriter, status: int, obj: Mapping[str, Any]) -> bool:
    return await _send_bytes(writer, status, json.dumps(obj).encode())


async def _send_bytes(writer: asyncio.StreamWriter, status: int, body: bytes) -> bool:
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode())
    writer.write(body)
    await writer.drain()
    return True


class Objects:
    """Makes the objects of each resource, by number."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.counts = {
            "namespaces": shape.namespaces + 1,
            "opsconfiginfoes": len(DEFAULTS),
            "defensepolicies": 0,
            "nodes": shape.nodes,
            "customresourcedefinitions": 0,
            "statefulsets": 0,
            "daemonsets": 0,
            "deployments": shape.deployments,
            "replicasets": shape.deployments * shape.revisions,
            "pods": shape.pods,
            "changeworkloads": shape.deployments,
            "changepods": shape.pods,
            "podunavailablebudgets": shape.budgets,
            **dict.fromkeys(("poddisruptionbudgets", "poddeletionflowcontrols"), 0),
        }
        self._fat = ("deployments", "replicasets", "pods", "changeworkloads", "changepods")
        self._templates = {key: _encoded(each) for key, each in _templates(shape).items()}
        metadata = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
        self._metadata = {
            key: _encoded(metadata | {"metadata": each["metadata"]}) for key, each in _templates(shape).items()
        }
        self._versions = [
            BY_KIND[DEPLOYMENTS.kind]
            .read(self._templates["deployments"] % self._fields(number, b""))
            .fingerprint.encode()
            for number in range(shape.deployments)
        ]

    def numbers(self, plural: str, namespace: str) -> range:
        """The numbers of the objects in a namespace; all numbers if `namespace` is empty. Numbers above the count are
        large objects in a namespace that is not governed."""
        count = self.counts[plural]
        if not namespace:
            return range(count + (self._shape.fat if plural in self._fat else 0))
        per = {"pods": self._shape.replicas, "changepods": self._shape.replicas, "replicasets": self._shape.revisions}
        size = count // self._shape.namespaces // per.get(plural, 1) * per.get(plural, 1)
        at = int(namespace.rpartition("-")[2])
        return range(at * size, (at + 1) * size)

    def maker(self, plural: str, *, metadata_only: bool) -> Callable[[int], bytes]:
        if plural == "opsconfiginfoes":
            return self._setting
        if not self.counts[plural]:
            return lambda _: b""
        template = (self._metadata if metadata_only else self._templates)[plural]
        count, per = self.counts[plural], 1
        if plural in ("pods", "changepods"):
            per = self._shape.replicas
        elif plural == "replicasets":
            per = self._shape.revisions
        known = -1
        fields: dict[bytes, bytes] = {}

        def make(number: int) -> bytes:
            nonlocal known, fields
            if number >= count:
                return self._made_fat(plural, template, number)
            workload, own = divmod(number, per)
            if plural == "podunavailablebudgets":
                workload = number * (self._shape.deployments // count)
            if workload != known:
                known = workload
                fields = self._fields(workload, self._versions[workload % len(self._versions)])
            return template % (fields | self._own(plural, workload, own, number))

        return make

    def _made_fat(self, plural: str, template: bytes, number: int) -> bytes:
        fields = self._fields(number, b"f" * 32)
        fields |= self._own(plural, number, 0, number)
        fields |= {b"namespace": b"ungoverned", b"annotation": b"a" * 256_000}
        return template % fields

    def _fields(self, workload: int, version: bytes) -> dict[bytes, bytes]:
        name = b"checkout-frontend-%05d" % workload
        current = self._shape.revisions - 1
        return {
            b"namespace": b"team-%02d" % self.namespace(workload),
            b"workload": name,
            b"workload_uid": _uid(b"d0", workload),
            b"version": version,
            b"of_set": version,
            b"release": names.change_workload_name("", name.decode(), version.decode()).encode(),
            b"release_uid": _uid(b"c0", workload),
            b"set": b"%s-%s" % (name, _hash(workload, current)),
            b"set_uid": _uid(b"50", workload * self._shape.revisions + current),
            b"old_uid": _uid(b"50", workload * self._shape.revisions + current - 1),
            b"hash": _hash(workload, current),
            b"number": b"%d" % workload,
            b"rv": b"%d" % (100_000_000 + workload),
            b"uid": _uid(b"a0", workload),
            b"annotation": b"a" * 1000,
            b"own": name,
            **_times(workload),
            **{b"pod%d" % each: self._pod(workload, each) for each in range(self._shape.replicas)},
            **{
                b"pod_uid%d" % each: _uid(b"90", workload * self._shape.replicas + each)
                for each in range(self._shape.replicas)
            },
        }

    def namespace(self, workload: int) -> int:
        """The number of the namespace of a workload."""
        return workload // max(1, self._shape.deployments // self._shape.namespaces) % self._shape.namespaces

    def _pod(self, workload: int, number: int) -> bytes:
        current = self._shape.revisions - 1
        return b"checkout-frontend-%05d-%s-%05x" % (workload, _hash(workload, current), 0x10000 + number * 7919)

    def _own(self, plural: str, workload: int, own: int, number: int) -> dict[bytes, bytes]:
        found = {b"rv": b"%d" % (100_000_000 + number * 7 % 800_000_000), b"index": b"%d" % (own + 1)}
        match plural:
            case "namespaces":
                found |= {b"own": b"team-%02d" % workload, b"uid": _uid(b"e0", workload)}
            case "nodes":
                found |= {b"own": b"node-%03d" % workload, b"uid": _uid(b"b0", workload)}
            case "deployments":
                found |= {b"uid": _uid(b"d0", workload)}
            case "podunavailablebudgets":
                found |= {b"uid": _uid(b"e1", number)}
            case "changeworkloads":
                found |= {b"uid": _uid(b"c0", workload)}
            case "replicasets":
                hashed = _hash(workload, own)
                found |= {b"own": b"checkout-frontend-%05d-%s" % (workload, hashed), b"hash": hashed}
                current = own == self._shape.revisions - 1
                found[b"replicas"] = b"%d" % (self._shape.replicas if current else 0)
                found |= {b"uid": _uid(b"50", number)}
                if own < self._shape.revisions - 1:
                    found[b"of_set"] = _digest(workload, own)
            case "pods" | "changepods":
                found |= {b"own": self._pod(workload, own), b"pod_uid": _uid(b"90", number)}
                found |= {b"uid": _uid(b"90" if plural == "pods" else b"f0", number)}
                found |= {
                    b"node": b"node-%03d" % (number * 31 % self._shape.nodes),
                    b"ip": b"10.%d.%d.%d" % _address(number),
                }
            case _:
                pass
        return found

    def _setting(self, number: int) -> bytes:
        return msgspec.json.encode(setting(list(DEFAULTS)[number]))


def _encoded(template: Mapping[str, Any]) -> bytes:
    """The template as JSON, with placeholders for numbers too."""
    return re.sub(rb'"%\((unix[0-9]*|replicas)\)s"', rb"%(\1)s", json.dumps(template).encode())


def _times(workload: int) -> dict[bytes, bytes]:
    """Times of the release of a workload: creation, success, settled."""
    found = {}
    for later in (0, 30, 150):
        at = _RELEASED + workload * 7919 % _SPREAD + later
        found[b"unix%d" % later] = b"%d" % at
        found[b"time%d" % later] = rfc3339(at).encode()
        found[b"plain%d" % later] = plain_time(at).encode()
    found[b"mark"] = found[b"unix30"]
    return found


def setting(name: str, **changes: object) -> OpsConfigInfo:
    """A setting with the condition Accepted."""
    metadata = ObjectMeta(
        name=name, namespace=names.SYSTEM_NAMESPACE, uid=f"setting-{name}", resource_version="10", generation=1,
        creation_timestamp=_TIME,
    )  # fmt: skip
    spec = msgspec.structs.replace(DEFAULTS[name], **changes)
    status = OpsConfigInfoStatus(
        enable=spec.enable,
        content=spec.content,
        conditions=(_condition(ConditionType.ACCEPTED, "Valid", "the setting is in effect"),),
        observed_generation=1,
    )
    return OpsConfigInfo(metadata=metadata, spec=spec, status=status)


def namespace(number: int, *, governed: bool = True, **annotations: str) -> dict[str, Any]:
    name = f"team-{number:02d}"
    own = {labels.GOVERNED: labels.GOVERNED_VALUE} if governed else {}
    metadata = {
        "name": name,
        "uid": _uid(b"e0", number).decode(),
        "labels": own | {"kubernetes.io/metadata.name": name},
    }
    return {"metadata": metadata | {"creationTimestamp": _TIME, "annotations": annotations}}


def _uid(prefix: bytes, number: int) -> bytes:
    """A uid that looks random, so that strings and hashes behave as with real uids."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x1234567) & (2**64 - 1)
    digits = b"%016x" % mixed
    return b"%s%06x-%s-4%s-8%s-%012x" % (prefix, number & 0xFFFFFF, digits[:4], digits[4:7], digits[7:10], mixed >> 16)


def _hash(workload: int, revision: int) -> bytes:
    return b"%010x" % ((workload * 31 + revision) * 2654435761 % 2**40)


def _digest(workload: int, revision: int) -> bytes:
    return b"%032x" % ((workload * 31 + revision) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)


def _address(number: int) -> tuple[int, int, int]:
    return number >> 16 & 255, number >> 8 & 255, number & 255


def _metadata(owner: tuple[str, str, str, str] | None, own: Mapping[str, str]) -> dict[str, Any]:
    """Metadata as an API server returns it, with managedFields. `owner`: the owner's apiVersion, kind, name and uid."""
    managed = {"manager": "kube-controller-manager", "operation": "Update", "time": _TIME, "fieldsType": "FieldsV1"}
    fields: dict[str, Any] = {f"f:field{each}": {"f:name": {}, "f:value": {}} for each in range(40)}
    metadata = {
        "name": "%(own)s",
        "namespace": "%(namespace)s",
        "uid": "%(uid)s",
        "resourceVersion": "%(rv)s",
        "generation": 1,
        "creationTimestamp": "%(time0)s",
        "labels": {
            "app": "%(workload)s",
            "pod-template-hash": "%(hash)s",
            "app.kubernetes.io/name": "%(workload)s",
            labels.VERSION: "%(of_set)s",
            **own,
        },
        "annotations": {"example.com/config": "%(annotation)s", "deployment.kubernetes.io/revision": "11"},
        "managedFields": [managed | {"fieldsV1": {"f:spec": fields}}],
    }
    if owner:
        version, kind, name, uid = owner
        reference = {"apiVersion": version, "kind": kind, "name": name, "uid": uid}
        metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    return metadata


def _made(type_: type[T], **fields: Any) -> T:
    """An object of a type, with placeholders instead of numbers."""
    return type_(**fields)


def _condition(type_: str, reason: str, message: str, since: str = _TIME) -> Condition:
    return Condition(type_, "True", reason, message, last_transition_time=since, observed_generation=1)


def _templates(shape: Shape) -> dict[str, dict[str, Any]]:
    replicas = shape.replicas
    env = [{"name": f"SETTING_{each}", "value": "v" * 40} for each in range(20)]
    container = {"name": "web", "image": "registry.example.com/shop/web:1.2.3", "env": env}
    own = {"app": "%(workload)s", labels.VERSION: "%(of_set)s"}
    containers: dict[str, Any] = {"containers": [container]}
    template = {"metadata": {"labels": own}, "spec": containers}
    selector = {"matchLabels": {"app": "%(workload)s"}}
    sets = {"replicas": replicas, "selector": selector, "template": template}
    counted = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1}
    ready = [
        {"type": kind, "status": "True", "lastTransitionTime": "%(time30)s", "lastProbeTime": None}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    running = {"name": "web", "ready": True, "restartCount": 0, "started": True, "image": container["image"]}
    deployment = ("apps/v1", "Deployment", "%(workload)s", "%(workload_uid)s")
    processed = {labels.DEFENSE_STATUS: labels.PROCESSED}
    times = {"create_time": "%(plain0)s", "create_time_unix": "%(unix0)s"}
    return {
        "namespaces": {
            "metadata": {
                "name": "%(own)s",
                "uid": "%(uid)s",
                "resourceVersion": "%(rv)s",
                "labels": {labels.GOVERNED: labels.GOVERNED_VALUE},
                "creationTimestamp": _TIME,
            }
        },
        "nodes": {
            "metadata": {"name": "%(own)s", "uid": "%(uid)s", "resourceVersion": "%(rv)s"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        "deployments": {"metadata": _metadata(None, processed), "spec": sets, "status": counted},
        "podunavailablebudgets": {
            "metadata": _metadata(None, {}),
            "spec": {"selector": selector, "maxUnavailable": 1},
            "status": _budget_status(shape),
        },
        "replicasets": {
            "metadata": _metadata(deployment, {}),
            "spec": sets | {"replicas": "%(replicas)s"},
            "status": counted | {"replicas": "%(replicas)s"},
        },
        "pods": {
            "metadata": _metadata(
                ("apps/v1", "ReplicaSet", "%(set)s", "%(set_uid)s"), {labels.OPERATE_FINISHED: "%(mark)s"}
            ),
            "spec": containers | {"nodeName": "%(node)s"},
            "status": {
                "phase": "Running",
                "podIP": "%(ip)s",
                "startTime": "%(time0)s",
                "conditions": ready,
                "containerStatuses": [running | {"state": {"running": {"startedAt": "%(time0)s"}}, "lastState": {}}],
            },
        },
        "changeworkloads": _release(shape, times) | {"metadata": _metadata(deployment, {}) | {"name": "%(release)s"}},
        "changepods": _batch(times)
        | {
            "metadata": _metadata(
                (CHANGE_WORKLOADS.api_version, CHANGE_WORKLOADS.kind, "%(release)s", "%(release_uid)s"), {}
            )
            | {"name": names.change_pod_name("%(release)s", "%(index)s")}
        },
    }


def _info(pod: str, uid: str, ip: str = "10.0.0.1") -> PodInfo:
    return PodInfo(
        pod=pod,
        uid=uid,
        app="%(workload)s",
        host_name=pod,
        namespace="%(namespace)s",
        work_space="default",
        ip=ip,
    )


def _release(shape: Shape, times: Mapping[str, Any]) -> dict[str, Any]:
    source = SourceRef(REPLICA_SETS.kind, "%(set)s", "%(set_uid)s", "%(version)s", "%(version)s")
    before = SourceRef(REPLICA_SETS.kind, "%(workload)s-7f6c9d5b84", "%(old_uid)s", "9" * 32)
    spec = _made(
        ChangeWorkloadSpec,
        change_workload_id="%(release)s",
        service_name="%(workload)s",
        app_name="%(workload)s",
        reversion="%(version)s",
        count_threshold=1,
        wait_time_threshold=60,
        workload_ref=WorkloadRef(DEPLOYMENTS.api_version, DEPLOYMENTS.kind, "%(workload)s", "%(workload_uid)s"),
        workload_generation=1,
        **times,
    )
    settled = "all pods stayed up for the start timeout after they passed; pods that break now do not end the release"
    status = _made(
        ChangeWorkloadStatus,
        status=WorkloadState.SUCCESS,
        defense_check_pass_pods=tuple(_info(f"%(pod{each})s", f"%(pod_uid{each})s") for each in range(shape.replicas)),
        entry_time="%(plain30)s",
        entry_time_unix="%(unix30)s",
        update_time="%(plain150)s",
        update_time_unix="%(unix150)s",
        settle_time_unix="%(unix150)s",
        source=source,
        previous=before,
        conditions=(
            _condition(
                ConditionType.VERIFIED, "PodsPassed", f"{shape.replicas} of {shape.replicas} pods passed", "%(time30)s"
            ),
            _condition(ConditionType.SETTLED, "StayedUp", settled, "%(time150)s"),
        ),
        observed_generation=1,
    )
    found: dict[str, Any] = msgspec.to_builtins(ChangeWorkload(metadata=ObjectMeta(), spec=spec, status=status))
    return found


def _budget_status(shape: Shape) -> dict[str, Any]:
    condition = {
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "%(time30)s",
        "message": "as it should be",
    }
    return {
        "observedGeneration": 1,
        "totalReplicas": shape.replicas,
        "desiredAvailable": shape.replicas - 1,
        "currentAvailable": shape.replicas,
        "unavailableAllowed": 1,
        "podsResourceVersion": "100000000",
        "conditions": [condition | {"type": each, "reason": each} for each in ("Accepted", "Satisfied")],
    }


def _batch(times: Mapping[str, Any]) -> dict[str, Any]:
    spec = _made(
        ChangePodSpec, change_workload_id="%(release)s", pod_infos=(_info("%(own)s", "%(pod_uid)s", "%(ip)s"),), **times
    )
    status = _made(
        ChangePodStatus,
        status=PodState.EXECUTE_DONE,
        message=PodState.PRE_FAILED,
        update_time="%(plain30)s",
        update_time_unix="%(unix30)s",
        conditions=(
            _condition(
                ConditionType.VERIFIED,
                "NotChecked",
                "not all pods got a verdict; a pod without a verdict counts as passed",
                "%(time30)s",
            ),
        ),
        observed_generation=1,
    )
    found: dict[str, Any] = msgspec.to_builtins(ChangePod(metadata=ObjectMeta(), spec=spec, status=status))
    return found


@contextlib.contextmanager
def kubeconfig(directory: Path, url: str) -> Iterator[Path]:
    """Write a kubeconfig for the API. Yields its path."""
    path = directory / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    path.write_text(yaml.safe_dump(content))
    yield path
