"""The DaemonSet controller: runs one pod on each eligible node. `rollout` makes the decisions."""

from kube_base.access.events import EventRecorder
from kube_base.resources import DAEMON_SETS
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.controller import WorkloadController, failure_of
from kube_sandbox.cluster.daemon_sets import pods as daemon_pods
from kube_sandbox.cluster.daemon_sets import rollout
from kube_sandbox.cluster.daemon_sets.rollout import Plan
from kube_sandbox.cluster.history import REVISION_LABEL, History
from kube_sandbox.cluster.kinds import Node, Pod
from kube_sandbox.cluster.pod_control import PodControl, in_batches
from kube_sandbox.cluster.work import Key, NotYet
from kube_sandbox.cluster.workload_kinds import ControllerRevision, DaemonSet


class DaemonSets(WorkloadController[DaemonSet]):
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        super().__init__(caches, DAEMON_SETS, caches.pods, workers=4)
        self._sets = caches.daemon_sets
        self._nodes = caches.nodes
        self._control = PodControl(caches, recorder, DAEMON_SETS)
        self._history = History(caches, DAEMON_SETS, label=REVISION_LABEL, releases=True)
        self.follow(caches.daemon_sets)
        caches.nodes.add_handler(self._node_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels:
            for ds in self._sets.all():
                self._queue.add(Key(ds.metadata.namespace, ds.metadata.name))

    async def _reconcile(self, key: Key) -> None:
        ds = self._get(key)
        if ds is None or ds.metadata.deletion_timestamp is not None:
            return
        metadata, spec = ds.metadata, ds.spec
        pods = await self._control.claim(metadata, spec.selector)
        kept = await self._history.of(ds)
        revision, collisions = await self._history.current(ds, kept, ds.status.collision_count, metadata.annotations)
        hash_ = revision.metadata.labels.get(REVISION_LABEL, "")
        nodes, placed, now = self._nodes.all(), daemon_pods.by_node(pods), self._clock()
        plan = rollout.manage(ds, nodes, placed, hash_, now)
        if not plan.create and not plan.delete:
            plan = rollout.update(ds, nodes, placed, hash_, now)
        error = await failure_of(self._carry_out(ds, plan, hash_))
        await self._write_status(key, hash_, collisions)
        old = [one for one in kept if one.metadata.uid != revision.metadata.uid]
        await self._clean_up(ds, old, pods)
        if error is not None:
            raise error
        if ended := rollout.failed(plan.delete):
            raise NotYet(f"replacing {len(ended)} ended pods with growing delays")

    async def _carry_out(self, ds: DaemonSet, plan: Plan, hash_: str) -> None:
        async def create(node: str) -> None:
            await self._control.create(ds.metadata, daemon_pods.body(ds, node, hash_))

        for pod in rollout.failed(plan.delete):
            how = "succeeded" if pod.status.phase == "Succeeded" else "failed"
            reason = "SucceededDaemonPod" if how == "succeeded" else "FailedDaemonPod"
            end = "delete it" if how == "succeeded" else "kill it"
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            text = f"Found {how} daemon pod {name} on node {pod.spec.node_name}, will try to {end}"
            self._control.event(ds.metadata, "Normal" if how == "succeeded" else "Warning", reason, text)
        try:
            await in_batches([lambda node=node: create(node) for node in plan.create])  # type: ignore[misc]
        finally:
            await self._control.delete_all(ds.metadata, plan.delete)

    async def _clean_up(self, ds: DaemonSet, old: list[ControllerRevision], pods: list[Pod]) -> None:
        hashes = {pod.metadata.labels.get(REVISION_LABEL) for pod in pods}
        live = {one.metadata.name for one in old if one.metadata.labels.get(REVISION_LABEL) in hashes}
        await self._history.prune(old, live, ds.spec.revision_history_limit, counts_live=True)

    async def _write_status(self, key: Key, hash_: str, collisions: int) -> None:
        """Compute the status from the current caches."""
        ds = self._get(key)
        if ds is None:
            return
        pods = self._control.owned(ds.metadata, ds.spec.selector)
        placed = daemon_pods.by_node(pods)
        now = self._clock()
        status = rollout.status(ds, self._nodes.all(), placed, hash_, collisions, now)
        await self._patch_status(ds, status_patch(status, ds.status))
        self._requeue_when_available(key, pods, ds.spec.min_ready_seconds, now)
