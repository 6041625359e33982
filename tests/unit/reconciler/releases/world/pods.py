"""Simulated pods."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from altershield.api.pod_verdicts import PodInfo
from altershield.workloads import pods as pod_projections
from altershield.workloads.pods import Pod
from kube_base.times import rfc3339

NAMESPACE = "default"
Object = dict[str, Any]


@dataclass
class SimPod:
    """A pod as its kubelet and the scheduler see it. All times are true times."""

    name: str
    uid: str
    image: str
    born: float
    container: Object = field(default_factory=dict)
    """Fields of its container that decide how long it may take to start."""
    node: str = "node-1"
    ready: bool = False
    ready_at: float = 0.0
    started_at: float = 0.0
    """When its container started for the first time; 0: when the pod was created."""
    restarts: int = 0
    waiting: tuple[str, str] | None = None
    ended_with: tuple[str, int] | None = None
    pod_labels: dict[str, str] = field(default_factory=dict)
    owner: Object = field(default_factory=dict)
    phase: str = "Running"
    unscheduled: bool = False
    silent: bool = False
    """Whether no scheduler looks at the pod."""
    creating: bool = False
    deleting: bool = False
    init_until: float = 0.0
    """For this time after its creation, the init container runs; 0: the pod has none."""
    init_restarts: int = 0
    now: float = 0.0
    ended_at: float = 0.0
    """When the last run of its container ended."""
    sidecar: tuple[int, float] = (0, 0.0)
    """The restarts of its sidecar, and when the last run of the sidecar ended."""
    refused: tuple[str, str] | None = None
    """Reason and message of the kubelet that refused or evicted the pod."""
    disrupted: tuple[str, str] | None = None
    """Reason and message of the condition DisruptionTarget."""

    def come_up(self, t: float) -> "SimPod":
        self.ready, self.ready_at, self.waiting, self.creating = True, t, None, False
        self.phase = "Running"
        return self

    def lose_readiness(self, t: float) -> "SimPod":
        self.ready, self.ready_at = False, t
        return self

    def crash(self, t: float, reason: str = "Error", code: int = 1) -> "SimPod":
        self.lose_readiness(t)
        self.restarts += 1
        self.ended_with, self.ended_at = (reason, code), t
        self.waiting = ("CrashLoopBackOff", "back-off 10s restarting failed container")
        return self

    def restart(self, t: float, reason: str = "Error", code: int = 1) -> "SimPod":
        """The container ends and is ready again within the same second."""
        self.restarts += 1
        self.ended_with, self.ended_at = (reason, code), t
        return self.come_up(t)

    def wait_for_image(self) -> "SimPod":
        self.waiting = ("ImagePullBackOff", 'Back-off pulling image "busybo"')
        self.phase = "Pending"
        return self

    def find_no_node(self) -> "SimPod":
        self.unscheduled, self.node, self.phase = True, "", "Pending"
        return self

    def misconfigure(self) -> "SimPod":
        self.waiting, self.phase = ("CreateContainerConfigError", 'secret "nobody" not found'), "Pending"
        return self

    def be_created(self) -> "SimPod":
        """The pod waits for volumes or the network."""
        self.creating, self.phase = True, "Pending"
        return self

    def _init(self, kubelet: float) -> Object:
        """The status of the init container."""
        begun, ended = rfc3339(self.born + kubelet), rfc3339(self.born + self.init_until + kubelet)
        state: Object = {"running": {"startedAt": begun}}
        if self.now >= self.born + self.init_until:
            state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": begun, "finishedAt": ended}}
        status = {"name": "init", "ready": "running" not in state, "started": True, "state": state}
        return {**status, "restartCount": self.init_restarts}

    def _sidecar(self, kubelet: float) -> Object:
        count, ended_at = self.sidecar
        last = {"reason": "Error", "exitCode": 2, "finishedAt": rfc3339(ended_at + kubelet)}
        state: Object = {"state": {"running": {}}, "lastState": {"terminated": last}}
        return {"name": "mesh", "ready": True, "restartCount": count, **state}

    def read(self, api: float, kubelet: float) -> Pod:
        running = {"startedAt": rfc3339((self.started_at or self.born) + kubelet)}
        state: Object = {"running": running} if self.waiting is None else {"waiting": _texts(self.waiting)}
        status: Object = {"name": "main", "ready": self.ready, "restartCount": self.restarts, "state": state}
        initializes = self.now < self.born + self.init_until
        if self.creating or initializes:
            status["state"] = {"waiting": {"reason": "ContainerCreating"}}
        if self.ended_with is not None:
            status["lastState"] = {"terminated": {"reason": self.ended_with[0], "exitCode": self.ended_with[1]}}
            if self.ended_at:
                status["lastState"]["terminated"]["finishedAt"] = rfc3339(self.ended_at + kubelet)
        conditions = [
            {
                "type": "Ready",
                "status": str(self.ready),
                "lastTransitionTime": rfc3339((self.ready_at or self.born) + kubelet),
            },
            {
                "type": "PodScheduled",
                "status": str(not self.unscheduled),
                "reason": "Unschedulable" if self.unscheduled else "",
                "message": "0/3 nodes are available" if self.unscheduled else "",
            },
        ]
        if self.silent:
            conditions.clear()
        if self.disrupted is not None:
            conditions.append({"type": "DisruptionTarget", "status": "True", **_texts(self.disrupted)})
        metadata: Object = {
            "name": self.name,
            "namespace": NAMESPACE,
            "uid": self.uid,
            "resourceVersion": "1",
            "creationTimestamp": rfc3339(self.born + api),
            "labels": self.pod_labels,
            "ownerReferences": [self.owner],
        }
        if self.deleting:
            metadata["deletionTimestamp"] = rfc3339(self.born + api)
        body = {
            "metadata": metadata,
            "spec": {**({"nodeName": self.node} if self.node else {}), "initContainers": [_SIDECAR]},
            "status": {
                **(_texts(self.refused) if self.refused is not None else {}),
                "phase": self.phase,
                **({"startTime": rfc3339(self.born + kubelet)} if self.node else {}),
                "podIP": "10.0.0.1",
                "conditions": conditions,
                "containerStatuses": [] if self.unscheduled else [status],
                "initContainerStatuses": [
                    *([self._init(kubelet)] if self.init_until else []),
                    *([self._sidecar(kubelet)] if self.sidecar[0] else []),
                ],
            },
        }
        return pod_projections.read(msgspec.json.encode(body))


_SIDECAR = {"name": "mesh", "restartPolicy": "Always"}


def _texts(waiting: tuple[str, str]) -> Object:
    return {"reason": waiting[0], "message": waiting[1]}


def infos(pods: Iterable[PodInfo]) -> list[str]:
    return [each.pod for each in pods]
