"""The events of a simulated fleet: replaced pods, reports of nodes, releases."""

import asyncio
import base64
import copy
import itertools
import json
import time

import aiohttp
import jsonpatch

from altershield.admission.webhooks import webhook_path
from altershield.api import labels
from altershield.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from bench.fleet.api import FleetApi, Object, now

_PENDING_SECONDS = 1.0  # from the creation of a pod until it is ready
_AT_ONCE = 2  # pods that a Deployment replaces at the same time: 25 % of five, rounded up
_NODE_SECONDS = 300.0  # between two reports of a node's status without a change, the kubelet's default


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
        metadata |= {"name": f"{deployment['metadata']['name']}-{version[:10]}", "creationTimestamp": now()}
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
            "creationTimestamp": now(),
        }
        self._names[number] = metadata["name"]
        metadata["labels"].pop(labels.OPERATE_FINISHED, None)
        if replica_set is not None:
            own_labels = replica_set["metadata"]["labels"]
            metadata["labels"] |= {key: own_labels[key] for key in (labels.VERSION, "pod-template-hash")}
            metadata["ownerReferences"][0] |= {key: replica_set["metadata"][key] for key in ("name", "uid")}
        running = new.pop("status")
        new["status"] = {"phase": "Pending", "startTime": now()}
        if drained and found is not None:
            api.store(PODS.plural, {**found, "metadata": {**found["metadata"], "deletionTimestamp": now()}})
        api.store(PODS.plural, new, "ADDED")
        await asyncio.sleep(_PENDING_SECONDS)
        if drained and found is not None:
            api.store(PODS.plural, found, "DELETED")
        conditions = [{**each, "lastTransitionTime": now()} for each in running["conditions"]]
        present = api.find(PODS.plural, metadata["namespace"], metadata["name"]) or new
        status = {**running, "startTime": now(), "conditions": conditions}
        api.store(PODS.plural, {**present, "status": status})
        if not drained:
            api.ready[metadata["name"]] = time.monotonic()
            if found is not None:
                api.store(PODS.plural, found, "DELETED")

    def _uid(self) -> str:
        self._new += 1
        return f"{self._new:08x}-0000-4000-8000-{time.time_ns() & 0xFFFFFFFFFFFF:012x}"
