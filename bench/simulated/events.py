"""The events of a simulated fleet: replaced pods, reports of nodes, releases."""

import asyncio
import copy
import itertools
import json
import math
import time
from collections.abc import Sequence

from altershield.api import labels
from bench.harness.waiting import paced
from bench.simulated.api import Api, Object, now
from bench.simulated.gatekeeper import Review
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS

_PENDING_SECONDS = 1.0  # from the creation of a pod until it is ready
_SURGE = 4  # a Deployment replaces a quarter of its pods at the same time, rounded up
_NODE_SECONDS = 300.0  # between two reports of a node's status without a change, the kubelet's default


class Fleet:
    """Makes the events of a fleet. Releases create at most `starts` pods in a second."""

    def __init__(self, api: Api, review: Review, starts: float = math.inf) -> None:
        self._api = api
        self._review = review
        self._starts = starts
        self._next_start = 0.0
        self._new = 0
        self._releasing: set[int] = set()
        self._current: dict[int, Object] = {}  # ReplicaSets of the released workloads
        self._names: dict[int, str] = {}  # the names of the pods that replaced pods of the start, by number

    async def churn(self, rate: float) -> None:
        """Replace `rate` pods in a second, of changing workloads, as after the drain of a node, until cancelled."""
        shape = self._api.shape
        async with asyncio.TaskGroup() as group:
            async for turn in paced(rate, itertools.count()):
                workload, own = shape.deployment_of(turn * 7919 % shape.pods)
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

    async def wave(self, workloads: Sequence[int], rate: float = math.inf) -> None:
        """Release these workloads, `rate` in a second. Ends when all their pods are ready."""
        async with asyncio.TaskGroup() as group:
            async for workload in paced(rate, workloads):
                group.create_task(self._release(workload))

    async def _release(self, workload: int) -> None:
        api, name = self._api, f"checkout-frontend-{workload:05d}"
        namespace = f"team-{api.objects.namespace(workload):02d}"
        self._releasing.add(workload)
        old = api.find(DEPLOYMENTS.plural, namespace, name)
        if old is None:
            raise LookupError(name)
        new = copy.deepcopy(old)
        new["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/shop/web:1.2.4"
        new = await self._review(old, new)
        new["metadata"]["generation"] = 2
        api.store(DEPLOYMENTS.plural, new)
        version = new["spec"]["template"]["metadata"]["labels"][labels.VERSION]
        replica_set = self._current[workload] = self._replica_set(workload, namespace, new, version)
        current = api.find(DEPLOYMENTS.plural, namespace, name) or new
        api.store(DEPLOYMENTS.plural, {**current, "status": {**current["status"], "observedGeneration": 2}})
        pods = range(api.shape.replicas(workload))
        at_once = math.ceil(len(pods) / _SURGE)
        for first in pods[::at_once]:
            async with asyncio.TaskGroup() as group:
                for own in pods[first : first + at_once]:
                    await self._start_turn()
                    group.create_task(self._replaced(workload, own, replica_set))
        self._releasing.discard(workload)

    def _replica_set(self, workload: int, namespace: str, deployment: Object, version: str) -> Object:
        shape, objects = self._api.shape, self._api.objects
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
        make = api.objects.maker(PODS.plural, metadata_only=False)
        number = api.shape.first_pod(workload) + own
        old: Object = json.loads(make(number))
        name = self._names.get(number, old["metadata"]["name"])
        found = api.find(PODS.plural, old["metadata"]["namespace"], name)
        new = copy.deepcopy(old)
        metadata = new["metadata"]
        self._new += 1
        metadata |= {
            "name": f"{metadata['name'].rpartition('-')[0]}-n{self._new:05x}",
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

    async def _start_turn(self) -> None:
        """Wait for the turn of a pod of a release to be created."""
        now = time.monotonic()
        self._next_start = max(now, self._next_start + 1 / self._starts)
        await asyncio.sleep(self._next_start - now)

    def _uid(self) -> str:
        self._new += 1
        return f"{self._new:08x}-0000-4000-8000-{time.time_ns() & 0xFFFFFFFFFFFF:012x}"
