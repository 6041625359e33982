"""The workload, its revisions and pods, the nodes and the clocks."""

import json
from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.ops_config import Settings
from altershield.api.policy import AppliedPolicy
from altershield.workloads.adapter import template_of
from altershield.workloads.hold import PAUSE
from altershield.workloads.pods import Pod
from altershield.workloads.start_budget import StartBudget, start_budget
from altershield.workloads.workload import Workload, fingerprint_of
from kube_base.times import rfc3339
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing
from tests.support import workloads
from tests.support.workloads import BY_NAME

from .pods import NAMESPACE, SimPod

NOW = 1_700_000_000.0
NAME, UID = "web", "workload-uid"
_ALL = 2**31 - 1
"""A partition above all pods."""

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CloneSet")
Object = dict[str, Any]


def template(image: str) -> Object:
    return workloads.template(NAME, image)


def fingerprint(image: str) -> str:
    """The version of a release of this image."""
    return fingerprint_of(template_of(template(image)))


class Cluster:
    def __init__(self, kind: str, *, replicas: int, observe: float, start_timeout: float) -> None:
        self.kind, self.adapter = kind, BY_NAME[kind]
        self.t = NOW
        self.ours = self.api = self.kubelet = self.node_clock = 0.0
        self.timing = Timing(start_timeout, observe)
        self.settings = Settings()
        self.policy = AppliedPolicy()
        """The policy of releases that begin."""
        self.held = False
        """Whether the reconciler paused the rollout."""
        self.held_version = ""
        self.paused_again = False
        """Whether a person continued the rollout that the reconciler paused, and paused it again."""
        self.replicas, self.image = replicas, ""
        self.rolling, self.paused, self.min_ready = True, False, 0
        self.container: Object = {}
        """Fields of the container that decide how long it may take to start. The version does not depend on them."""
        self.progress_deadline: int | None = None
        self.surge: int | str = "100%"
        """`maxSurge`, which StatefulSets do not have."""
        self.updated = 0
        """How many pods of the present template the status of a Deployment counts."""
        self.partition: int | str = 0
        self.current_revision = ""
        """The revision that a StatefulSet has rolled out completely."""
        self.observed = True
        self.refusal = ""
        """Why the workload's controller cannot create pods."""
        self.generation = 0
        self.own_labels: dict[str, str] = {}
        self.own_annotations: dict[str, str] = {}
        self.revisions: dict[str, Object] = {}
        """The revisions by image."""
        self.pods: dict[str, SimPod] = {}
        self.lost_nodes: set[str] = set()
        self.deleted_nodes: set[str] = set()
        self.labels_of_nodes: dict[str, dict[str, str]] = {}
        self.found_nodes: dict[str, float] = {}
        """By node: when a lost node was ready again."""
        self.groups: PodGroups | None = None
        self._born = 0

    # clocks and nodes

    @property
    def now(self) -> float:
        """The time of the reconciler's clock."""
        return self.t + self.ours

    def node_ready(self, node: str) -> bool:
        return node not in self.lost_nodes

    def node_lost(self, node: str) -> bool:
        return node in self.lost_nodes or node in self.deleted_nodes

    def node_ready_at(self, node: str) -> float:
        return self.found_nodes.get(node, 0.0) if node not in self.lost_nodes else 0.0

    def node_labels(self) -> dict[str, dict[str, str]]:
        return self.labels_of_nodes

    def lose_node(self, node: str) -> None:
        self.lost_nodes.add(node)
        self.touch(*[pod for pod in self.pods.values() if pod.node == node])

    def find_node(self, node: str) -> None:
        if node in self.lost_nodes:
            self.lost_nodes.remove(node)
            self.found_nodes[node] = self.t + self.node_clock
        self.touch(*[pod for pod in self.pods.values() if pod.node == node])

    # the workload

    def _spec(self, *, paused: bool) -> tuple[Object, Object]:
        """The spec and the status, without the template."""
        spec: Object = {"minReadySeconds": self.min_ready}
        status: Object = {"observedGeneration": self.generation if self.observed else self.generation - 1}
        match self.kind:
            case "Deployment":
                spec["strategy"] = (
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.surge}}
                    if self.rolling
                    else {"type": "Recreate"}
                )
                spec["paused"] = paused
                status["updatedReplicas"] = self.updated
                if self.refusal:
                    status["conditions"] = [
                        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": self.refusal}
                    ]
            case "StatefulSet":
                spec["updateStrategy"] = (
                    {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"partition": _ALL if paused else int(self.partition)},
                    }
                    if self.rolling
                    else {"type": "OnDelete"}
                )
                status["currentRevision"] = self.current_revision
                status["updateRevision"] = f"{NAME}-{self.image}"
            case "DaemonSet":
                status["desiredNumberScheduled"] = self.replicas
                spec["updateStrategy"] = (
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.surge}}
                    if self.rolling and not paused
                    else {"type": "OnDelete"}
                )
            case "CloneSet":
                spec["updateStrategy"] = {
                    "type": "ReCreate",
                    "partition": self.partition,
                    "paused": paused,
                    "maxSurge": self.surge,
                }
        return spec, status

    def manifest(self) -> Object:
        version = {key: value for key, value in self.own_labels.items() if key == labels.VERSION}
        spec, status = self._spec(paused=self.paused)
        annotations = {}
        if self.held:
            own, _ = self._spec(paused=False)
            fields = {f"/spec/{name}": own[name] for name in ("paused", "updateStrategy") if name in own}
            if self.kind == "CloneSet":
                fields = {"/spec/updateStrategy/paused": False}
            hold = {"version": self.held_version, "causes": [{"by": PAUSE}], "fields": fields}
            annotations = {ROLLOUT: json.dumps(hold)}
        metadata = {
            "namespace": NAMESPACE,
            "uid": UID,
            "resourceVersion": "1",
            "generation": self.generation,
            "labels": self.own_labels,
            "annotations": {**self.own_annotations, **annotations},
        }
        made = workloads.manifest(
            self.kind, NAME, self.image, replicas=self.replicas, template_labels=version, metadata=metadata, **spec
        )
        return {**made, "status": status}

    @property
    def workload(self) -> Workload:
        read = self.adapter.read(msgspec.json.encode(self.manifest()))
        return msgspec.structs.replace(read, start=self.start(self.container))

    def start(self, container: Object) -> StartBudget:
        spec = workloads.template(NAME, self.image, container=container)["spec"]
        return start_budget(msgspec.Raw(msgspec.json.encode(spec)), self.progress_deadline)

    @property
    def version(self) -> str:
        return self.own_labels.get(labels.VERSION, "")

    @property
    def suspended(self) -> bool:
        return labels.SUSPEND in self.own_labels

    def release(self, image: str, *, version: str = "") -> None:
        """Release this image as a gatekeeper admits it. The controller creates the revision immediately."""
        self.image = image
        self.generation += 1
        self.own_labels[labels.VERSION] = version or fingerprint(image)
        self.own_labels.pop(labels.DEFENSE_STATUS, None)
        number = max((self.adapter.number(each) for each in self.revisions.values()), default=0) + 1
        known = self.revisions.get(image)
        self.revisions[image] = self._revision(image, known["metadata"]["uid"] if known else f"uid-{image}", number)

    def scale(self, replicas: int) -> None:
        self.replicas = replicas
        self.generation += 1

    def _revision(self, image: str, uid: str, number: int, version: str = "") -> Object:
        pod_template = template(image)
        pod_template["metadata"]["labels"][labels.VERSION] = version or self.version or fingerprint(image)
        metadata: Object = {
            "name": f"{NAME}-{image}",
            "namespace": NAMESPACE,
            "uid": uid,
            "creationTimestamp": rfc3339(self.t + self.api),
            "ownerReferences": [
                {
                    "apiVersion": self.adapter.resource.api_version,
                    "kind": self.kind,
                    "name": NAME,
                    "uid": UID,
                    "controller": True,
                }
            ],
        }
        if self.kind == "Deployment":
            pod_template["metadata"]["labels"]["pod-template-hash"] = image
            metadata["annotations"] = {"deployment.kubernetes.io/revision": str(number)}
            return {"metadata": metadata, "spec": {"template": pod_template}}
        pod_template["$patch"] = "replace"
        return {"metadata": metadata, "data": {"spec": {"template": pod_template}}, "revision": number}

    def edit_revision(self, image: str) -> None:
        """Somebody writes another template into the stored revision of this image."""
        revision = self.revisions[image]
        (revision if self.kind == "Deployment" else revision["data"])["spec"]["template"] = template("evil")

    # pods

    def make(self, count: int = 1, image: str = "", *, number: int | None = None) -> list[SimPod]:
        """Create pods of the present template, or of an older one."""
        return [self._make(image or self.image, number) for _ in range(count)]

    def make_up(self, count: int = 1, image: str = "", *, number: int | None = None) -> list[SimPod]:
        """Create pods that are up at once."""
        pods = self.make(count, image, number=number)
        self.up(*pods)
        return pods

    def _make(self, image: str, number: int | None) -> SimPod:
        self._born += 1
        revision = self.revisions[image]["metadata"]
        # only the pods of a StatefulSet are created again with the same name
        if self.kind != "StatefulSet":
            number = self._born
        elif number is None:
            taken = {pod.name for pod in self.of(image)}
            ordinals = [*range(int(self.partition), self.replicas), *range(self._born)]
            number = next(each for each in ordinals if f"{NAME}-{each}" not in taken)
        name = f"{NAME}-{number}"
        between = self.adapter.intermediate
        pod = SimPod(name, f"pod-{self._born}", image, self.t)
        pod.container = self.container
        pod.pod_labels = {"app": "web", labels.VERSION: self._version_in(image)}
        if between is not None:
            pod.owner = _owner(between.api_version, between.kind, revision["name"], revision["uid"])
        else:
            pod.owner = _owner(self.adapter.resource.api_version, self.kind, NAME, UID)
            pod.pod_labels[labels.CONTROLLER_REVISION_HASH] = revision["name"]
        self.pods[pod.uid] = pod
        self.touch(pod)
        return pod

    def _version_in(self, image: str) -> str:
        pod_template = self.adapter.template(self.revisions[image]) or {}
        return str(pod_template["metadata"]["labels"].get(labels.VERSION, ""))

    def up(self, *pods: SimPod) -> None:
        for pod in pods:
            pod.come_up(self.t)
        self.touch(*pods)

    def update_in_place(self, pod: SimPod, *, ready: bool = False) -> None:
        """Update a pod to the present revision, as a CloneSet does. `ready`: its old container still runs."""
        pod.image = self.image
        pod.pod_labels[labels.CONTROLLER_REVISION_HASH] = self.revisions[self.image]["metadata"]["name"]
        pod.pod_labels[labels.VERSION] = self._version_in(self.image)
        if not ready:
            pod.restarts += 1
            pod.lose_readiness(self.t)
        self.touch(pod)

    def touch(self, *pods: SimPod) -> None:
        """Update the pods in the pod groups, as watch events do."""
        if self.groups is not None:
            for pod in pods:
                self.groups.update_pod(self.project(pod), self.now)

    def project(self, pod: SimPod) -> Pod:
        pod.now = self.t
        return pod.read(self.api, self.kubelet)

    def remove(self, *pods: SimPod) -> None:
        for pod in pods:
            self.pods.pop(pod.uid, None)
            if self.groups is not None:
                self.groups.remove_pod(pod.uid)

    def of(self, image: str) -> list[SimPod]:
        return [pod for pod in self.pods.values() if pod.image == image]


def _owner(api_version: str, kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}
