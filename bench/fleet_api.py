"""The API of `bench.cluster` with writes, and the events of a fleet: replaced pods, reports of nodes, releases.

An object that was written replaces the object that `bench.cluster` made. Lists show the state at the start, so they
must end before the first event.
"""

import asyncio
import base64
import copy
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
import jsonpatch

from altershield.admission.webhooks import webhook_path
from altershield.api import labels
from altershield.api.change_pod import PodState
from altershield.api.meta import rfc3339
from altershield.api.resources import CHANGE_PODS, DEPLOYMENTS, LEASES, PODS, REPLICA_SETS
from bench.cluster import Api, Shape, _send

Object = dict[str, Any]

_BOOKMARK_SECONDS = 10.0
_PENDING_SECONDS = 1.0  # from the creation of a pod until it is ready
_AT_ONCE = 2  # pods that a Deployment replaces at the same time: 25 % of five, rounded up
_NODE_SECONDS = 300.0  # between two reports of a node's status without a change, the kubelet's default
_WORKLOAD = re.compile(r"checkout-frontend-(\d+)")
_POD = re.compile(r"checkout-frontend-\d+-[0-9a-f]+-([0-9a-f]{5})")


@dataclass
class Traffic:
    """The requests to the API and to the gatekeeper, and the events of watches."""

    by_kind: Counter[str] = field(default_factory=Counter)
    """By verb and resource, such as `patch changepods/status`."""
    admissions: list[float] = field(default_factory=list)
    """Seconds from sending a review to its response."""
    verdicts: list[float] = field(default_factory=list)
    """Seconds from the readiness of a pod of a release until the status of its batch says that it is done."""
    denied: int = 0
    events: int = 0
    """Events that were sent to watches."""


class FleetApi(Api):
    """The API, with writes to single objects."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, lead=True)
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

    def _number(self, plural: str, name: str) -> int | None:
        found = _WORKLOAD.match(name)
        if plural == "nodes":
            return int(name.rpartition("-")[2])
        if found is None or plural not in self._objects.counts:
            return None
        workload, tail = int(found.group(1)), name.rpartition("-")[2]
        if plural in ("pods", "changepods"):
            pod = _POD.fullmatch(name)
            if plural == "pods" and pod is None:
                return None
            own = (int(pod.group(1), 16) - 0x10000) // 7919 if pod else int(tail) - 1
            number = workload * self.shape.replicas + own
            return number if 0 <= own < self.shape.replicas else None
        if plural == "replicasets":
            first = workload * self.shape.revisions
            make = self._objects.maker(plural, metadata_only=True)
            names = (json.loads(make(first + each))["metadata"]["name"] for each in range(self.shape.revisions))
            return next((first + index for index, each in enumerate(names) if each == name), None)
        return workload

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
                return await _send(writer, 200, {"metadata": metadata, "items": items})
            case "create":
                return await self._create(writer, plural, namespace, json.loads(body))
        found = self.find(plural, namespace, name)
        if found is None:
            return await _send(writer, 404, _failure(404, "NotFound", f"{plural} {name} not found"))
        match verb:
            case "patch":
                return await self._patch(writer, plural, found, json.loads(body))
            case "delete":
                self.store(plural, found, "DELETED")
        return await _send(writer, 200, found)

    def _selected(self, plural: str, namespace: str, selector: str) -> list[Object]:
        """The objects of one workload (`app=NAME`), and written objects with these labels."""
        wanted = dict(each.partition("=")[::2] for each in selector.split(",") if each)
        keys = {key for key in self._written if key[:2] == (plural, namespace)}
        app = _WORKLOAD.fullmatch(wanted.get("app", ""))
        if app and plural in self._objects.counts:
            per = {"replicasets": self.shape.revisions, "deployments": 1}.get(plural, self.shape.replicas)
            make = self._objects.maker(plural, metadata_only=True)
            first = int(app.group(1)) * per
            keys |= {(plural, namespace, json.loads(make(first + each))["metadata"]["name"]) for each in range(per)}
        found = (self.find(*key) for key in sorted(keys))
        return [each for each in found if each and wanted.items() <= (each["metadata"].get("labels") or {}).items()]

    async def _create(self, writer: asyncio.StreamWriter, plural: str, namespace: str, obj: Object) -> bool:
        metadata = obj["metadata"]
        if self.find(plural, namespace, metadata["name"]) is not None:
            return await _send(writer, 409, _failure(409, "AlreadyExists", f"{metadata['name']} already exists"))
        metadata |= {"uid": f"{self._version:032x}", "creationTimestamp": _now(), "generation": 1}
        metadata["namespace"] = namespace
        return await _send(writer, 201, self.store(plural, obj, "ADDED"))

    async def _patch(self, writer: asyncio.StreamWriter, plural: str, found: Object, patch: Any) -> bool:
        if isinstance(patch, list):
            try:
                changed = jsonpatch.apply_patch(found, patch)
            except jsonpatch.JsonPatchException as error:
                return await _send(writer, 422, _failure(422, "Invalid", str(error)))
        else:
            version = (patch.get("metadata") or {}).pop("resourceVersion", "")
            if version and version != found["metadata"]["resourceVersion"]:
                return await _send(writer, 409, _failure(409, "Conflict", "the object has been modified"))
            changed = _merged(found, patch)
        if plural == CHANGE_PODS.plural and changed["status"].get("status") == PodState.EXECUTE_DONE:
            now = time.monotonic()
            for info in changed["spec"]["podInfos"]:
                if (since := self.ready.pop(info["pod"], None)) is not None:
                    self.traffic.verdicts.append(now - since)
        return await _send(writer, 200, self.store(plural, changed))


class Fleet:
    """Makes the events of a fleet. `gatekeeper`: the URL for the reviews of releases."""

    def __init__(self, api: FleetApi, gatekeeper: str) -> None:
        self._api = api
        self._gatekeeper = gatekeeper
        self._new = 0
        self._releasing: set[int] = set()
        self._current: dict[int, Object] = {}  # ReplicaSets of the released workloads
        self._names: dict[int, str] = {}  # the names of the pods that replaced pods of the start, by number

    async def churn(self, rate: float) -> None:
        """Replace `rate` pods in a second, of changing workloads, as after the drain of a node, until cancelled."""
        shape, began = self._api.shape, time.monotonic()
        async with asyncio.TaskGroup() as group:
            for turn in itertools.count():
                await asyncio.sleep(began + turn / rate - time.monotonic())
                number = turn * 7919 % shape.pods
                workload, own = divmod(number, shape.replicas)
                if workload not in self._releasing:
                    group.create_task(self._replaced(workload, own, self._current.get(workload), drained=True))

    async def report(self) -> None:
        """Send the reports of the nodes until cancelled."""
        while True:
            for number in range(self._api.shape.nodes):
                node = self._api.find("nodes", "", f"node-{number:03d}")
                if node is not None:
                    self._api.store("nodes", node)
                await asyncio.sleep(_NODE_SECONDS / self._api.shape.nodes)

    async def wave(self, releases: int, rate: float) -> None:
        """Release `releases` workloads in all namespaces, `rate` in a second, each with two reviews."""
        step, began = max(1, self._api.shape.deployments // releases), time.monotonic()
        connector = aiohttp.TCPConnector(limit=50)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            for each in range(releases):
                await asyncio.sleep(began + each / rate - time.monotonic())
                group.create_task(self._release(each * step, session))

    async def _release(self, workload: int, session: aiohttp.ClientSession) -> None:
        api, name = self._api, f"checkout-frontend-{workload:05d}"
        namespace = f"team-{api._objects.namespace(workload):02d}"
        self._releasing.add(workload)
        old = api.find(DEPLOYMENTS.plural, namespace, name)
        if old is None:
            raise LookupError(name)
        new = copy.deepcopy(old)
        new["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/shop/web:1.2.4"
        for mutating in (True, False):
            response = await self._reviewed(session, webhook_path(DEPLOYMENTS, mutating=mutating), old, new)
            api.traffic.denied += not response["allowed"]
            if patch := response.get("patch"):
                new = jsonpatch.apply_patch(new, json.loads(base64.b64decode(patch)))
        new["metadata"]["generation"] = 2
        api.store(DEPLOYMENTS.plural, new)
        version = new["spec"]["template"]["metadata"]["labels"][labels.VERSION]
        replica_set = self._current[workload] = self._replica_set(workload, namespace, new, version)
        current = api.find(DEPLOYMENTS.plural, namespace, name) or new
        api.store(DEPLOYMENTS.plural, {**current, "status": {**current["status"], "observedGeneration": 2}})
        for first in range(0, api.shape.replicas, _AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for own in range(first, min(first + _AT_ONCE, api.shape.replicas)):
                    group.create_task(self._replaced(workload, own, replica_set))
        self._releasing.discard(workload)

    async def _reviewed(self, session: aiohttp.ClientSession, path: str, old: Object, new: Object) -> Object:
        metadata, type_ = old["metadata"], {"kind": DEPLOYMENTS.kind, "apiVersion": DEPLOYMENTS.api_version}
        what = {"group": "apps", "version": "v1", "resource": "deployments"}
        self._new += 1
        request = {
            "uid": f"{self._new:032x}",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": what,
            "requestResource": what,
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "operation": "UPDATE",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": type_ | new,
            "oldObject": type_ | old,
            "dryRun": False,
        }
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        body = json.dumps(review).encode()
        began = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{self._gatekeeper}{path}", data=body, headers=headers, ssl=False) as answer:
            text = await answer.read()
        self._api.traffic.admissions.append(time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"the gatekeeper answered {answer.status}: {text[:500].decode()}")
        response: Object = json.loads(text)["response"]
        return response

    def _replica_set(self, workload: int, namespace: str, deployment: Object, version: str) -> Object:
        shape, objects = self._api.shape, self._api._objects
        made: Object = json.loads(
            objects.maker(REPLICA_SETS.plural, metadata_only=False)((workload + 1) * shape.revisions - 1)
        )
        made["spec"]["template"] = copy.deepcopy(deployment["spec"]["template"])
        metadata = made["metadata"]
        metadata |= {"name": f"{deployment['metadata']['name']}-{version[:10]}", "creationTimestamp": _now()}
        metadata["uid"] = self._uid()
        metadata["labels"] |= {labels.VERSION: version, "pod-template-hash": version[:10]}
        metadata["annotations"]["deployment.kubernetes.io/revision"] = "12"
        return self._api.store(REPLICA_SETS.plural, made, "ADDED")

    async def _replaced(self, workload: int, own: int, replica_set: Object | None, *, drained: bool = False) -> None:
        """Replace a pod by a pod of this ReplicaSet, or of the ReplicaSet of the start (None). A release deletes the
        old pod when the new pod is ready. A drain deletes it before."""
        api = self._api
        make = api._objects.maker(PODS.plural, metadata_only=False)
        old: Object = json.loads(make(workload * api.shape.replicas + own))
        number = workload * api.shape.replicas + own
        name = self._names.get(number, old["metadata"]["name"])
        found = api.find(PODS.plural, old["metadata"]["namespace"], name)
        new = copy.deepcopy(old)
        metadata = new["metadata"]
        self._new += 1
        metadata |= {
            "name": f"{metadata['name'][:-5]}n{self._new:05x}",
            "uid": self._uid(),
            "creationTimestamp": _now(),
        }
        self._names[number] = metadata["name"]
        metadata["labels"].pop(labels.OPERATE_FINISHED, None)
        if replica_set is not None:
            own_labels = replica_set["metadata"]["labels"]
            metadata["labels"] |= {key: own_labels[key] for key in (labels.VERSION, "pod-template-hash")}
            metadata["ownerReferences"][0] |= {key: replica_set["metadata"][key] for key in ("name", "uid")}
        running = new.pop("status")
        new["status"] = {"phase": "Pending", "startTime": _now()}
        if drained and found is not None:
            api.store(PODS.plural, {**found, "metadata": {**found["metadata"], "deletionTimestamp": _now()}})
        api.store(PODS.plural, new, "ADDED")
        await asyncio.sleep(_PENDING_SECONDS)
        if drained and found is not None:
            api.store(PODS.plural, found, "DELETED")
        conditions = [{**each, "lastTransitionTime": _now()} for each in running["conditions"]]
        present = api.find(PODS.plural, metadata["namespace"], metadata["name"]) or new
        status = {**running, "startTime": _now(), "conditions": conditions}
        api.store(PODS.plural, {**present, "status": status})
        if not drained:
            api.ready[metadata["name"]] = time.monotonic()
            if found is not None:
                api.store(PODS.plural, found, "DELETED")

    def _uid(self) -> str:
        self._new += 1
        return f"{self._new:08x}-0000-4000-8000-{time.time_ns() & 0xFFFFFFFFFFFF:012x}"


def _parts(path: str) -> tuple[str, str, str, str]:
    """Resource, namespace, name and subresource of a path."""
    parts = [unquote(each) for each in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    return plural, namespace, name, subresource


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


def _now() -> str:
    return rfc3339(time.time())
