"""Which keys an event of a watch puts into which queues.

An event only says where to look: reconciling the same key once too often does no harm, once too seldom would.
"""

from dataclasses import dataclass, field, fields

from altershield.api import names
from altershield.api.kinds import ChangePod, ChangeWorkload, OpsConfigInfo
from altershield.api.meta import ObjectMeta
from altershield.api.views import Deployment, Namespace, Pod, ReplicaSet
from altershield.kube.queue import WorkQueue
from reconciler.caches import Caches, Key, deployment_owner
from reconciler.decisions import pods as facts


@dataclass(frozen=True)
class Queues:
    """One queue per controller, called as its file is."""

    namespaces: WorkQueue[Key] = field(default_factory=WorkQueue)
    deployments: WorkQueue[Key] = field(default_factory=WorkQueue)
    slipped: WorkQueue[Key] = field(default_factory=WorkQueue)
    pods: WorkQueue[Key] = field(default_factory=WorkQueue)
    change_workloads: WorkQueue[Key] = field(default_factory=WorkQueue)
    change_pods: WorkQueue[Key] = field(default_factory=WorkQueue)
    settings: WorkQueue[Key] = field(default_factory=WorkQueue)
    rollback: WorkQueue[Key] = field(default_factory=WorkQueue)

    def by_name(self) -> dict[str, WorkQueue[Key]]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Routes:
    """Handlers for the caches' events. Old is None for a new object, new None for a deleted one."""

    def __init__(self, caches: Caches, queues: Queues) -> None:
        self._caches = caches
        self._queues = queues
        caches.namespaces.add_handler(self._namespace)
        caches.deployments.add_handler(self._deployment)
        caches.replica_sets.add_handler(self._replica_set)
        caches.unversioned.add_handler(self._replica_set)
        caches.pods.add_handler(self._pod)
        caches.change_workloads.add_handler(self._change_workload)
        caches.change_pods.add_handler(self._change_pod)
        caches.settings.add_handler(self._setting)

    def _namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and (old is None or not old.governed) and self._caches.unversioned.synced:
            self._queues.namespaces.add(_key(new.metadata))
        for namespace in {seen.metadata.name for seen in (old, new) if seen is not None}:
            for deployment in self._caches.deployments_in(namespace):
                self._deployment(deployment, deployment)
                for pod in self._caches.pods_of(deployment, deployment.version):
                    self._pod(pod, pod)

    def _deployment(self, old: Deployment | None, new: Deployment | None) -> None:
        for deployment in (old, new):
            if deployment is not None:
                self._queues.deployments.add(_key(deployment.metadata))
                self._queues.slipped.add(_key(deployment.metadata))
                for record in self._caches.change_workloads_of(deployment):
                    self._record(_key(record.metadata))

    def _replica_set(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is not None and new.metadata.deletion_timestamp is None:
            owner = deployment_owner(new.metadata)
            if owner is not None:
                self._queues.slipped.add((new.metadata.namespace, owner.name))
        for replica_set in (old, new):
            deployment = self._caches.deployment_of(replica_set) if replica_set is not None else None
            if deployment is not None:
                self._record(_current(deployment))

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old is not new and _seen(old) == _seen(new):
            return  # most of a pod's changes mean nothing here
        for pod in (old, new):
            replica_set = self._caches.replica_set_of(pod) if pod is not None else None
            deployment = self._caches.deployment_of(replica_set) if replica_set is not None else None
            if deployment is not None:
                self._record(_current(deployment))
        if new is not None and facts.ready(new) and not facts.finished(new):
            self._queues.pods.add(_key(new.metadata))

    def _change_workload(self, old: ChangeWorkload | None, new: ChangeWorkload | None) -> None:
        for record in (old, new):
            if record is not None:
                self._record(_key(record.metadata))
                deployment = self._caches.deployment_of(record) if new is None else None
                if deployment is not None:  # a record that somebody deleted comes back
                    self._queues.deployments.add(_key(deployment.metadata))

    def _change_pod(self, old: ChangePod | None, new: ChangePod | None) -> None:
        for record in (old, new):
            if record is not None:
                namespace, name = _key(record.metadata)
                self._queues.change_pods.add((namespace, name))
                self._queues.change_workloads.add((namespace, names.change_workload_of(name)))

    def _setting(self, old: OpsConfigInfo | None, new: OpsConfigInfo | None) -> None:
        for setting in (old, new):
            if setting is not None:
                self._queues.settings.add(_key(setting.metadata))
        if old is not new:
            for record in self._caches.change_workloads.all():
                self._queues.change_workloads.add(_key(record.metadata))

    def _record(self, key: Key) -> None:
        self._queues.change_workloads.add(key)
        self._queues.rollback.add(key)


def _key(metadata: ObjectMeta) -> Key:
    return metadata.namespace, metadata.name


def _current(deployment: Deployment) -> Key:
    """The record of the version that the Deployment is at."""
    metadata = deployment.metadata
    return metadata.namespace, names.change_workload_name(metadata.name, deployment.version)


def _seen(pod: Pod) -> tuple[object, ...]:
    """All of a pod that decisions look at."""
    return (
        pod.version,
        facts.exists(pod),
        facts.ready(pod),
        facts.finished(pod),
        facts.crash_looping(pod),
        pod.status.pod_ip,
    )
