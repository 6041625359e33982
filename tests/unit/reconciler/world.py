"""A simulated cluster with one workload of any kind, its pods, ChangeWorkloads and ChangePods, and a reconciler that
carries out the decisions.

Times: `t` is the true time in Unix seconds. The clocks of the reconciler, the API server and the kubelets may differ
from it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from altershield.api import labels, names
from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangePodStatus,
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    ConditionType,
    PodInfo,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.meta import Condition, ObjectMeta, OwnerReference, find_condition, plain_time, rfc3339
from altershield.api.ops_config import Settings
from altershield.workloads import BY_KIND, change_workload_name, is_pod_of_revision
from altershield.workloads import pods as pod_projections
from altershield.workloads.adapter import template_of
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload, version_of
from reconciler.batches import batch as batch_projections
from reconciler.batches import transitions as batches
from reconciler.releases import creation, projection, rollback
from reconciler.releases.decide import decide
from reconciler.releases.effects import (
    Announce,
    CreateBatch,
    Decision,
    DeletePod,
    Mark,
    ReleaseAgain,
    Remove,
    RestoreLabel,
    Resume,
    SetThreshold,
    Suspend,
)
from reconciler.releases.health import Timing
from reconciler.releases.live_reader import LiveReader, _revision
from reconciler.releases.pod_groups import PodGroups
from reconciler.releases.projection import Release
from reconciler.releases.snapshot import Snapshot, Target
from reconciler.releases.ungated import Revision, present
from tests.support import workloads

NOW = 1_700_000_000.0
NAMESPACE, NAME, UID = "default", "web", "workload-uid"
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CloneSet")
Object = dict[str, Any]


class Killed(Exception):  # noqa: N818  (of a reconciler, not of a test)
    """The reconciler died between two writes."""


class Conflicted(Exception):  # noqa: N818
    """The object was changed since it was read."""


class WriteRefused(Exception):  # noqa: N818
    """A policy of the cluster refuses the write."""


@dataclass
class SimPod:
    """A pod as its kubelet and the scheduler see it. All times are true times."""

    name: str
    uid: str
    image: str
    born: float
    node: str = "node-1"
    ready: bool = False
    ready_at: float = 0.0
    restarts: int = 0
    waiting: tuple[str, str] | None = None
    ended_with: tuple[str, int] | None = None
    pod_labels: dict[str, str] = field(default_factory=dict)
    owner: Object = field(default_factory=dict)
    phase: str = "Running"
    unscheduled: bool = False
    creating: bool = False
    deleting: bool = False
    message: str = ""

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
        self.ended_with = (reason, code)
        self.waiting = ("CrashLoopBackOff", "back-off 10s restarting failed container")
        return self

    def restart(self, t: float) -> "SimPod":
        """The container ends and is ready again within the same second."""
        self.restarts += 1
        self.ended_with = ("Error", 1)
        return self.come_up(t)

    def wait_for_image(self) -> "SimPod":
        self.waiting = ("ImagePullBackOff", 'Back-off pulling image "busybo"')
        self.phase = "Pending"
        return self

    def find_no_node(self) -> "SimPod":
        self.unscheduled, self.node, self.phase = True, "", "Pending"
        return self

    def be_created(self) -> "SimPod":
        """The pod waits for volumes or the network."""
        self.creating, self.phase = True, "Pending"
        return self

    def read(self, api: float, kubelet: float) -> Pod:
        state: Object = {"running": {}} if self.waiting is None else {"waiting": _texts(self.waiting)}
        status: Object = {"name": "main", "ready": self.ready, "restartCount": self.restarts, "state": state}
        if self.creating:
            status["state"] = {"waiting": {"reason": "ContainerCreating"}}
        if self.ended_with is not None:
            status["lastState"] = {"terminated": {"reason": self.ended_with[0], "exitCode": self.ended_with[1]}}
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
            "spec": {"nodeName": self.node} if self.node else {},
            "status": {
                "phase": self.phase,
                "podIP": "10.0.0.1",
                "conditions": conditions,
                "containerStatuses": [] if self.unscheduled else [status],
            },
        }
        return pod_projections.read(msgspec.json.encode(body))


def _texts(waiting: tuple[str, str]) -> Object:
    return {"reason": waiting[0], "message": waiting[1]}


def template(image: str) -> Object:
    return workloads.template(NAME, image)


def fingerprint(image: str) -> str:
    """The version of a release of this image."""
    return version_of(template_of(template(image)))


class World:
    def __init__(self, kind: str, *, replicas: int = 3, observe: float = 10, start_timeout: float = 120) -> None:
        self.kind, self.adapter = kind, BY_KIND[kind]
        self.t = NOW
        self.ours = self.api = self.kubelet = self.node_clock = 0.0
        self.timing = Timing(start_timeout, observe)
        self.settings = Settings()
        self.replicas, self.image = replicas, ""
        self.rolling, self.paused, self.min_ready = True, False, 0
        self.partition: int | str = 0
        self.observed = True
        self.refusal = ""
        """Why the workload's controller cannot create pods."""
        self.generation = 0
        self.own_labels: dict[str, str] = {}
        self.revisions: dict[str, Object] = {}
        """The revisions by image."""
        self.pods: dict[str, SimPod] = {}
        self.releases: dict[str, ChangeWorkload] = {}
        self.batches: dict[str, ChangePod] = {}
        self.lost_nodes: set[str] = set()
        self.found_nodes: dict[str, float] = {}
        """By node: when a lost node was ready again."""
        self.events_say: Any = None
        """The fault that the Events of pods in creation show."""
        self.write_refused = ""
        """Why a policy refuses the release of an older template."""
        self.announced: list[Announce] = []
        self.resumed_by: list[str] = []
        self.groups: PodGroups | None = None
        self.checked = True
        """Whether the controller of batches runs."""
        self.looks = 0
        self.writes = 0
        self.decision = Decision()
        self.write_hook: Callable[[str], None] = lambda what: None
        self._born = 0

    # clocks and nodes

    @property
    def now(self) -> float:
        """The time of the reconciler's clock."""
        return self.t + self.ours

    def node_ready(self, node: str) -> bool:
        return node not in self.lost_nodes

    def node_lost(self, node: str) -> bool:
        return node in self.lost_nodes

    def node_ready_at(self, node: str) -> float:
        return self.found_nodes.get(node, 0.0) if node not in self.lost_nodes else 0.0

    def lose_node(self, node: str) -> None:
        self.lost_nodes.add(node)
        self.touch(*[pod for pod in self.pods.values() if pod.node == node])

    def find_node(self, node: str) -> None:
        if node in self.lost_nodes:
            self.lost_nodes.remove(node)
            self.found_nodes[node] = self.t + self.node_clock
        self.touch(*[pod for pod in self.pods.values() if pod.node == node])

    # the workload

    def manifest(self) -> Object:
        version = {key: value for key, value in self.own_labels.items() if key == labels.VERSION}
        spec: Object = {"minReadySeconds": self.min_ready}
        status: Object = {"observedGeneration": self.generation if self.observed else self.generation - 1}
        match self.kind:
            case "Deployment":
                spec["strategy"] = {"type": "RollingUpdate" if self.rolling else "Recreate"}
                spec["paused"] = self.paused
                if self.refusal:
                    status["conditions"] = [
                        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": self.refusal}
                    ]
            case "StatefulSet":
                spec["updateStrategy"] = (
                    {"type": "RollingUpdate", "rollingUpdate": {"partition": int(self.partition)}}
                    if self.rolling
                    else {"type": "OnDelete"}
                )
            case "DaemonSet":
                status["desiredNumberScheduled"] = self.replicas
                spec["updateStrategy"] = {"type": "RollingUpdate" if self.rolling else "OnDelete"}
            case "CloneSet":
                spec["updateStrategy"] = {"type": "ReCreate", "partition": self.partition, "paused": self.paused}
        metadata = {
            "namespace": NAMESPACE,
            "uid": UID,
            "resourceVersion": "1",
            "generation": self.generation,
            "labels": self.own_labels,
        }
        made = workloads.manifest(
            self.kind, NAME, self.image, replicas=self.replicas, template_labels=version, metadata=metadata, **spec
        )
        return {**made, "status": status}

    @property
    def workload(self) -> Workload:
        return self.adapter.read(msgspec.json.encode(self.manifest()))

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

    def _revision(self, image: str, uid: str, number: int, version: str = "") -> Object:
        held = template(image)
        held["metadata"]["labels"][labels.VERSION] = version or self.version or fingerprint(image)
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
            held["metadata"]["labels"]["pod-template-hash"] = image
            metadata["annotations"] = {"deployment.kubernetes.io/revision": str(number)}
            return {"metadata": metadata, "spec": {"template": held}}
        held["$patch"] = "replace"
        return {"metadata": metadata, "data": {"spec": {"template": held}}, "revision": number}

    # pods

    def make(self, count: int = 1, image: str = "", *, number: int | None = None) -> list[SimPod]:
        """Create pods of the present template, or of an older one."""
        return [self._make(image or self.image, number) for _ in range(count)]

    def _make(self, image: str, number: int | None) -> SimPod:
        self._born += 1
        revision = self.revisions[image]["metadata"]
        # only the pods of a StatefulSet are created again with the same name
        name = f"{NAME}-{number if number is not None and self.kind == 'StatefulSet' else self._born}"
        between = self.adapter.intermediate
        pod = SimPod(name, f"pod-{self._born}", image, self.t)
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
        held = self.adapter.template(self.revisions[image]) or {}
        return str(held["metadata"]["labels"].get(labels.VERSION, ""))

    def up(self, *pods: SimPod) -> None:
        for pod in pods:
            pod.come_up(self.t)
        self.touch(*pods)

    def update_in_place(self, pod: SimPod) -> None:
        """Update a pod to the present revision, as a CloneSet does."""
        pod.image = self.image
        pod.pod_labels[labels.CONTROLLER_REVISION_HASH] = self.revisions[self.image]["metadata"]["name"]
        pod.pod_labels[labels.VERSION] = self._version_in(self.image)
        pod.restarts += 1
        pod.lose_readiness(self.t)
        self.touch(pod)

    def touch(self, *pods: SimPod) -> None:
        """Update the pods in the pod groups, as watch events do."""
        if self.groups is not None:
            for pod in pods:
                self.groups.update_pod(self.project(pod), self.now)

    def project(self, pod: SimPod) -> Pod:
        return pod.read(self.api, self.kubelet)

    def remove(self, *pods: SimPod) -> None:
        for pod in pods:
            self.pods.pop(pod.uid, None)
            if self.groups is not None:
                self.groups.remove_pod(pod.uid)

    def of(self, image: str) -> list[SimPod]:
        return [pod for pod in self.pods.values() if pod.image == image]

    # what is stored

    def stored(self, image: str = "") -> ChangeWorkload:
        return self.releases[fingerprint(image or self.image)]

    def status(self, image: str = "") -> ChangeWorkloadStatus:
        return self.stored(image).status

    def state(self, image: str = "") -> str:
        return self.status(image).status

    def condition(self, type_: ConditionType, image: str = "") -> Condition | None:
        return find_condition(self.status(image).conditions, type_)

    def said(self, type_: ConditionType, image: str = "") -> tuple[str, str]:
        """Status and reason of a condition."""
        found = self.condition(type_, image)
        return ("", "") if found is None else (found.status, found.reason)

    def edit_status(self, image: str = "", **fields: Any) -> None:
        """Change a status as a person does."""
        release = self.stored(image)
        self._store(msgspec.structs.replace(release, status=msgspec.structs.replace(release.status, **fields)))

    def ask_rollback(self, to: str = "") -> None:
        self.edit_status(status=WorkloadState.ROLLBACK, rollback_to=to)

    def judge(self, pod: SimPod, verdict: str, message: str = "find error") -> bool:
        """Write a person's verdict into the newest batch of the pod and its version. Return whether there is one."""
        version = names.version_of
        own = [
            each
            for each in self.batches.values()
            if version(each.spec.change_workload_id) == fingerprint(pod.image)
            and any(info.uid == pod.uid for info in each.spec.pod_infos)
        ]
        if not own:
            return False
        newest = max(own, key=lambda each: names.change_pod_number(each.metadata.name))
        others = tuple(each for each in newest.status.pod_results if each.pod != pod.name)
        results = (*others, PodInfo(pod=pod.name, verdict=verdict, message=message))
        self._store_batch(newest, msgspec.structs.replace(newest.status, pod_results=results))
        return True

    @property
    def reasons(self) -> list[str]:
        return [each.reason for each in self.announced]

    # the reconciler

    def die(self) -> None:
        """The leader dies, and its pod groups are lost."""
        self.groups = None

    def reconcile(self) -> bool:
        """Run each controller once. Return whether anything was written."""
        before = self.writes
        if self.checked:
            self._reconcile_batches()
        self._reconcile_release()
        return self.writes != before

    def rest(self, turns: int = 60) -> int:
        """Reconcile until nothing is written, while the time stands still. Return the number of turns."""
        for turn in range(turns):
            if not self.reconcile() and self.decision.requeue_after not in (0, 0.0):
                return turn
        raise AssertionError("the reconciler writes again and again")

    def run(self, seconds: float) -> None:
        """Let `seconds` pass, and reconcile whenever the reconciler has asked for it."""
        end = self.t + seconds
        self.rest()
        for _ in range(2000):
            again = self.decision.requeue_after
            if again is None or self.t + again > end:
                break
            self.t += max(again, 0.001)
            self.rest()
        else:
            raise AssertionError("the reconciler asks to be called again and again")
        self.t = end
        self.rest()

    def advance(self, seconds: float) -> None:
        """Let time pass without a reconciler."""
        self.t += seconds

    def _write(self, what: str) -> None:
        self.write_hook(what)
        self.writes += 1

    def _projected(self, release: ChangeWorkload) -> Release:
        return projection.read(msgspec.json.encode(release))

    def _reconcile_batches(self) -> None:
        for name in list(self.batches):
            release = self.batches[name]
            observed = batches.BatchSnapshot(release, False, None, 120, 120)
            status, following = batches.decide(release.status, observed, self.now)
            assert following is None
            if status != release.status:
                self._write("batch")
                self._store_batch(release, status)

    def _store_batch(self, release: ChangePod, status: ChangePodStatus) -> None:
        release = msgspec.structs.replace(release, status=status)
        self.batches[release.metadata.name] = release
        if self.groups is not None and self.groups.release_uid == release.metadata.owner_references[0].uid:
            self.groups.update_batch(batch_projections.project(release))

    def _store(self, release: ChangeWorkload) -> None:
        self.releases[names.version_of(release.metadata.name)] = release

    def _reconcile_release(self) -> None:
        self.decision = Decision()
        workload = self.workload
        own = [self._projected(each) for each in self.releases.values()]
        for other in own:
            if other.status.status == WorkloadState.ROLLBACK and names.version_of(other.metadata.name) != self.version:
                self._close(other, workload)
                return
        release = next((each for each in own if names.version_of(each.metadata.name) == self.version), None)
        if release is None or not workload.processed:
            self._begin(workload, release, [each for each in own if each is not release])
            return
        self._go_on(workload, release, [each for each in own if each is not release])

    def _begin(self, workload: Workload, release: Release | None, others: list[Release]) -> None:
        version = workload.version
        name = change_workload_name(self.kind, NAME, version)
        metadata = ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"record-{version}",
            generation=1,
            resource_version="1",
            labels={labels.VERSION: version},
            owner_references=(
                OwnerReference(self.kind, NAME, UID, self.adapter.resource.api_version, controller=True),
            ),
        )
        spec = ChangeWorkloadSpec(
            change_workload_id=name,
            service_name=NAME,
            app_name=NAME,
            reversion=version,
            count_threshold=self.settings.batch(workload.replicas),
            wait_time_threshold=60,
            create_time=plain_time(self.now),
            create_time_unix=int(self.now),
            workload_ref=WorkloadRef(self.adapter.resource.api_version, self.kind, NAME, UID),
            workload_generation=workload.generation,
        )
        if release is None:
            self._write("record")
            self._store(ChangeWorkload(metadata, spec))
        elif release.spec.workload_generation != workload.generation:
            status = ChangeWorkloadStatus(
                status=WorkloadState.INIT,
                source=release.status.source,
                previous=creation.previous(release, others),
                conditions=creation._kept_conditions(release, self.now),
            )
            self._write("status")
            self._store(ChangeWorkload(metadata, release.spec, status))
            self._write("spec")
            self._store(ChangeWorkload(metadata, spec, status))
        self._write("label")
        self.own_labels[labels.DEFENSE_STATUS] = labels.PROCESSED
        self.own_labels.pop(labels.IGNORED_SUSPEND, None)

    def _close(self, release: Release, workload: Workload) -> None:
        source = release.status.source
        projected = [self.project(pod) for pod in self.pods.values()]
        pods = [pod for pod in projected if is_pod_of_revision(self.adapter, pod, source.name, source.uid)]
        decision = rollback.close(release, workload, rollback.stuck_pods(workload, pods), self.now)
        self._carry_out(release, workload, decision)

    def open_groups(self, release: Release, source: SourceRef, workload: Workload) -> PodGroups:
        if self.groups is None or not self.groups.is_for(workload, release, source):
            self.groups = PodGroups(workload, release, source, self, self.timing)
            for each in self.batches.values():
                if each.metadata.owner_references[0].uid == release.metadata.uid:
                    self.groups.update_batch(batch_projections.project(each))
            for pod in self.pods.values():
                self.groups.update_pod(self.project(pod), self.now)
        self.groups.refresh(workload, self.now)
        return self.groups

    def revision_projections(self) -> list[Revision]:
        return [_revision(self.workload, raw) for raw in self.revisions.values()]

    def snapshot(self, release: Release, others: list[Release], workload: Workload) -> Snapshot:
        source = release.status.source
        if not source.uid and workload.up_to_date:
            found = present(workload, self.revision_projections())
            if found is not None:
                held = found.source
                source = SourceRef(held.kind, held.name, held.uid, self.version, held.fingerprint)
        known = release.status.previous
        return Snapshot(
            release=release,
            workload=workload,
            groups=self.open_groups(release, source, workload) if source.uid else None,
            others=others,
            settings=self.settings,
            timing=self.timing,
            source=source,
            previous=known if known.uid else creation.previous(release, others),
        )

    def targets(self, snapshot: Snapshot) -> list[Target]:
        self.looks += 1
        groups = snapshot.groups
        assert groups is not None
        if self.events_say is not None:
            for pod in self.pods.values():
                if pod.creating:
                    groups.set_events_fault(pod.uid, self.events_say)
            groups.refresh(snapshot.workload, self.now)
        look: Any = LiveReader(None, self)  # type: ignore[arg-type]
        projected = [self.project(pod) for pod in self.pods.values()]
        found: list[Target] = look._targets(
            snapshot.workload,
            snapshot.source,
            self.revision_projections(),
            projected,
            [snapshot.release, *snapshot.others],
        )
        return found

    def _go_on(self, workload: Workload, release: Release, others: list[Release]) -> None:
        snapshot = self.snapshot(release, others, workload)
        self.decision = decide(snapshot, self.now)
        if self.decision.read_live:
            snapshot = msgspec_replace(snapshot, targets=self.targets(snapshot))
            self.decision = decide(snapshot, self.now)
            assert not self.decision.read_live
        try:
            self._carry_out(release, workload, self.decision)
        except WriteRefused as cause:
            current = self._projected(self.releases[self.version])
            decision = rollback.refused(current, str(cause), self.now)
            self._carry_out(current, workload, decision)
            self.decision = msgspec_replace(decision, requeue_after=5.0)

    def _carry_out(self, release: Release, workload: Workload, decision: Decision) -> None:
        for effect in decision.before:
            match effect:
                case Mark(pod, at):
                    if pod.metadata.uid in self.pods:
                        self._write("mark")
                        sim = self.pods[pod.metadata.uid]
                        sim.pod_labels[labels.OPERATE_FINISHED] = str(at)
                        self.touch(sim)
                case RestoreLabel(obj):
                    if obj.metadata.uid in self.pods:
                        self._write("put back")
                        sim = self.pods[obj.metadata.uid]
                        sim.pod_labels[labels.VERSION] = names.version_of(release.metadata.name)
                        self.touch(sim)
                case CreateBatch():
                    self._write("create batch")
                    self._create_batch(release, effect)
                case DeletePod(pod):
                    self._write("delete pod")
                    sim = self.pods.get(pod.metadata.uid)
                    if sim is not None:
                        self.remove(sim)
        for effect in decision.before:
            match effect:
                case SetThreshold(count):
                    self._write("threshold")
                    whole = self.releases[names.version_of(release.metadata.name)]
                    spec = msgspec.structs.replace(whole.spec, count_threshold=count)
                    self._store(msgspec.structs.replace(whole, spec=spec))
                case Resume():
                    self._write("resume")
                    self.own_labels.pop(labels.SUSPEND, None)
                    self.resumed_by.append(self.version)
        if decision.status is not None:
            self._write("status")
            self._save(release, decision)
        for after in decision.after:
            match after:
                case Suspend(since):
                    self._write("suspend")
                    self.own_labels[labels.SUSPEND] = str(since)
                case ReleaseAgain(target):
                    self._release_again(target)
                case Remove(obj):
                    self._write("remove")
                    self._remove(obj)
                case Announce():
                    self.announced.append(after)
        if decision.lists and self.groups is not None:
            self.groups.written_revision = self.groups.revision

    def _save(self, release: Release, decision: Decision) -> None:
        status = decision.status
        assert status is not None
        whole = self.releases[names.version_of(release.metadata.name)]
        if not decision.lists:
            status = msgspec.structs.replace(
                status,
                defense_preparing_pods=whole.status.defense_preparing_pods,
                defense_checking_pods=whole.status.defense_checking_pods,
                defense_check_pass_pods=whole.status.defense_check_pass_pods,
            )
        self._store(msgspec.structs.replace(whole, status=status))

    def _create_batch(self, release: Release, effect: CreateBatch) -> None:
        name = names.change_pod_name(release.metadata.name, effect.number)
        if name in self.batches:
            raise Conflicted(name)
        metadata = ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"batch-{name}",
            generation=1,
            owner_references=(
                OwnerReference(
                    "ChangeWorkload",
                    release.metadata.name,
                    release.metadata.uid,
                    "app.ops.cloud.alipay.com/v1alpha1",
                    controller=True,
                ),
            ),
        )
        spec = ChangePodSpec(release.metadata.name, plain_time(self.now), int(self.now), effect.pods, effect.failed_by)
        self._store_batch(ChangePod(metadata, spec), ChangePodStatus())

    def _release_again(self, target: SourceRef) -> None:
        if self.write_refused:
            raise WriteRefused(self.write_refused)
        self._write("release again")
        image = next(image for image, revision in self.revisions.items() if revision["metadata"]["uid"] == target.uid)
        self.release(image, version=target.version or target.fingerprint)

    def _remove(self, obj: Any) -> None:
        name = obj.metadata.name
        if name in self.batches:
            del self.batches[name]
            self.groups = None
        else:
            self.releases.pop(names.version_of(name), None)
            gone = obj.metadata.uid
            self.batches = {
                key: each for key, each in self.batches.items() if each.metadata.owner_references[0].uid != gone
            }

    # whole releases

    def roll_out(self, image: str) -> list[SimPod]:
        """Release an image, replace all pods by new ones that come up, and wait until the release has settled."""
        old = list(self.pods.values())
        self.release(image)
        self.rest()
        pods = self.make(self.replicas)
        self.up(*pods)
        self.remove(*old)
        self.run(self.timing.observe + self.timing.start_timeout + 60)
        assert self.state() == WorkloadState.SUCCESS, self.status()
        return pods


def msgspec_replace(obj: Any, **fields: Any) -> Any:
    """`dataclasses.replace`, without its types."""
    from dataclasses import replace

    return replace(obj, **fields)


def _owner(api_version: str, kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def infos(pods: Iterable[PodInfo]) -> list[str]:
    return [each.pod for each in pods]
