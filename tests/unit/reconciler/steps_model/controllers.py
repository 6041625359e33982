"""The controllers of workloads, in simulated time: the sandbox's pure functions decide what they do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kube_base.times import rfc3339
from kube_sandbox.cluster import availability
from kube_sandbox.cluster.clone_sets import rollout as clone_rollout
from kube_sandbox.cluster.daemon_sets import pods as daemon_pods
from kube_sandbox.cluster.daemon_sets import rollout as daemon_rollout
from kube_sandbox.cluster.deployments import rollout as deployment_rollout
from kube_sandbox.cluster.history import REVISION_LABEL, Revisions
from kube_sandbox.cluster.kinds import (
    Condition,
    Deployment,
    LabelSelector,
    Meta,
    Node,
    Pod,
    PodSpec,
    PodStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
)
from kube_sandbox.cluster.replica_sets import replicas
from kube_sandbox.cluster.stateful_sets import rollout as stateful_rollout
from kube_sandbox.cluster.workload_kinds import CloneSet, DaemonSet, StatefulSet
from tests.unit.reconciler.releases.world import SimPod

Object = dict[str, Any]
Act = Callable[[], None]

NAME = "web"


@dataclass
class Seen:
    """What a controller reads, and how it acts. `image` is the present template; pods have the image of theirs."""

    kind: str
    image: str
    replicas: int
    spec: Object
    generation: int
    now: float
    pods: dict[str, SimPod]
    nodes: list[str]
    create: Callable[[str, int | None, str], None]
    """Creates a pod of an image, with an ordinal (StatefulSet) or on a node (DaemonSet)."""
    delete: Callable[[str], None]
    update: Callable[[str], None]
    """Updates a pod in place."""


@dataclass
class _Set:
    """A ReplicaSet."""

    image: str
    number: int
    replicas: int = 0
    min_ready: int = 0
    annotations: dict[str, str] = field(default_factory=dict)


def wire(pod: SimPod) -> Pod:
    """The pod as the sandbox's controllers read it."""
    ready = Condition("Ready", str(pod.ready), last_transition_time=rfc3339(pod.ready_at or pod.born))
    labels = {REVISION_LABEL: revision(pod.image)}
    deleted = rfc3339(pod.born) if pod.deleting else None
    metadata = Meta(
        name=pod.name, uid=pod.uid, creation_timestamp=rfc3339(pod.born), labels=labels, deletion_timestamp=deleted
    )
    counts: tuple[Object, ...] = ({"name": "main", "restartCount": pod.restarts},)
    return Pod(
        metadata, PodSpec(node_name=pod.node), PodStatus(pod.phase, conditions=(ready,), container_statuses=counts)
    )


def revision(image: str) -> str:
    return f"{NAME}-{image}"


class Controller:
    """The controller of one workload. Each call of `step` is one reconciliation."""

    def __init__(self) -> None:
        self.quota = False
        """Whether a quota refuses pods above the replicas."""
        self.refused = ""
        self._sets: dict[str, _Set] = {}
        self._current = ""
        """The revision that a StatefulSet has rolled out completely."""

    # status

    def status(self, seen: Seen) -> Object:
        own = [pod for pod in seen.pods.values() if pod.image == seen.image and not pod.deleting]
        found: Object = {"observedGeneration": seen.generation, "updatedReplicas": len(own)}
        if seen.kind == "StatefulSet":
            found |= {"currentRevision": self._current, "updateRevision": revision(seen.image)}
        if seen.kind == "DaemonSet":
            found |= {"desiredNumberScheduled": seen.replicas}
        if self.refused:
            condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": self.refused}
            found["conditions"] = [condition]
        return found

    # steps

    def step(self, seen: Seen) -> bool:
        """Whether anything changed."""
        match seen.kind:
            case "Deployment":
                return self._deployment(seen)
            case "StatefulSet":
                return self._stateful_set(seen)
            case "DaemonSet":
                return self._daemon_set(seen)
            case _:
                return self._clone_set(seen)

    def is_scaling(self, seen: Seen) -> bool:
        return any(
            each.replicas > 0 and each.annotations.get(deployment_rollout.DESIRED_REPLICAS) != str(seen.replicas)
            for each in self._sets.values()
        )

    def _deployment(self, seen: Seen) -> bool:
        deployment = self._read(seen, Deployment)
        before = [(each.image, each.replicas, each.min_ready, dict(each.annotations)) for each in self._sets.values()]
        present = self._sets.get(seen.image)
        if present is not None:
            present.number = max((each.number for each in self._sets.values() if each is not present), default=0) + 1
            present.min_ready = deployment.spec.min_ready_seconds
        known = {image: self._replica_set(each, seen) for image, each in self._sets.items()}
        new = known.get(seen.image)
        old = [each for image, each in known.items() if image != seen.image]
        scales = []
        if deployment.spec.paused or deployment_rollout.is_scaling(deployment, known.values()):
            scales = deployment_rollout.scaled(deployment, new, old)
        elif new is None:
            number = max((each.number for each in self._sets.values()), default=0) + 1
            size = deployment_rollout.new_size(deployment, 0, old)
            annotations = deployment_rollout.replica_annotations(deployment)
            self._sets[seen.image] = _Set(seen.image, number, size, deployment.spec.min_ready_seconds, annotations)
        else:
            scales = deployment_rollout.rolling(deployment, new, old)
        for each, size in scales:
            found = self._sets[each.metadata.name]
            found.replicas = size
            found.annotations = deployment_rollout.replica_annotations(deployment)
        after = [(each.image, each.replicas, each.min_ready, dict(each.annotations)) for each in self._sets.values()]
        return self._replica_sets(seen) or before != after

    def _replica_set(self, known: _Set, seen: Seen) -> ReplicaSet:
        pods = [wire(pod) for pod in seen.pods.values() if pod.image == known.image and not pod.deleting]
        metadata = Meta(name=known.image, uid=known.image, creation_timestamp=f"{known.number:06}")
        spec = ReplicaSetSpec(LabelSelector(), {}, known.replicas, known.min_ready)
        available = sum(availability.is_available(pod, known.min_ready, seen.now) for pod in pods)
        annotated = msgspec.structs.replace(metadata, annotations=dict(known.annotations))
        return ReplicaSet(annotated, spec, ReplicaSetStatus(replicas=len(pods), available_replicas=available))

    def _replica_sets(self, seen: Seen) -> bool:
        """The ReplicaSet controller."""
        changed, refused = False, ""
        for each in sorted(self._sets.values(), key=lambda found: found.image == seen.image):
            active = [pod for pod in seen.pods.values() if pod.image == each.image and not pod.deleting]
            for _ in range(each.replicas - len(active)):
                if self.quota and len(seen.pods) >= seen.replicas:
                    refused = "FailedCreate: pods is forbidden: exceeded quota: pods"
                    break
                seen.create(each.image, None, "")
                changed = True
            if len(active) > each.replicas:
                pods = [wire(pod) for pod in active]
                for pod in replicas.to_delete(pods, pods, len(active) - each.replicas, seen.now):
                    seen.delete(pod.metadata.uid)
                    changed = True
        changed |= refused != self.refused
        self.refused = refused
        return changed

    def _stateful_set(self, seen: Seen) -> bool:
        pods = [wire(pod) for pod in seen.pods.values()]
        self._current = self._current or revision(seen.image)
        revisions = Revisions(self._current, revision(seen.image))
        whole = self._read(seen, StatefulSet)
        status = stateful_rollout.status(whole, pods, revisions, 0, seen.now)
        whole = msgspec.structs.replace(whole, status=status)
        before, self._current = self._current, status.current_revision
        plan = stateful_rollout.plan(whole, pods, revisions, seen.now)
        for number in plan.create:
            image = self._current if stateful_rollout.is_of_current(whole, number) else revision(seen.image)
            seen.create(image.removeprefix(f"{NAME}-"), number, "")
        for pod in plan.delete:
            seen.delete(pod.metadata.uid)
        return bool(plan.create or plan.delete or before != self._current)

    def _daemon_set(self, seen: Seen) -> bool:
        nodes = [Node(Meta(name=each)) for each in seen.nodes]
        placed = daemon_pods.by_node([wire(pod) for pod in seen.pods.values()])
        whole, own = self._read(seen, DaemonSet), revision(seen.image)
        plan = daemon_rollout.manage(whole, nodes, placed, own, seen.now)
        if not plan.create and not plan.delete:
            plan = daemon_rollout.update(whole, nodes, placed, own, seen.now)
        for node in plan.create:
            seen.create(seen.image, None, node)
        for pod in plan.delete:
            seen.delete(pod.metadata.uid)
        return bool(plan.create or plan.delete)

    def _clone_set(self, seen: Seen) -> bool:
        pods = [wire(pod) for pod in seen.pods.values() if not pod.deleting]
        self._current = self._current or revision(seen.image)
        revisions, whole = Revisions(self._current, revision(seen.image)), self._read(seen, CloneSet)
        if len(pods) == seen.replicas and all(pod.image == seen.image for pod in seen.pods.values()):
            self._current = revision(seen.image)
        plan = clone_rollout.plan(whole, pods, revisions, seen.now)
        for _ in range(plan.create_current):
            seen.create(self._current.removeprefix(f"{NAME}-"), None, "")
        for _ in range(plan.create_update):
            seen.create(seen.image, None, "")
        for pod in plan.delete:
            seen.delete(pod.metadata.uid)
        for pod in plan.update:
            if whole.spec.update_strategy.type == "ReCreate":
                seen.delete(pod.metadata.uid)
            else:
                seen.update(pod.metadata.uid)
        return bool(plan.create_current or plan.create_update or plan.delete or plan.update)

    def _read(self, seen: Seen, kind: type[Any]) -> Any:
        spec = {"selector": {}, "template": {}, **seen.spec}
        if seen.kind != "DaemonSet":
            spec["replicas"] = seen.replicas
        return msgspec.convert({"metadata": {"name": NAME, "generation": seen.generation}, "spec": spec}, kind)
