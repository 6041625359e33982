"""The DaemonSet controller: a pod on every node that wants one. What to do is decided by `rollout`."""

from kube_sandbox.client.errors import KubernetesError
from kube_sandbox.client.events import EventRecorder
from kube_sandbox.client.queue import WorkQueue
from kube_sandbox.client.resources import DAEMON_SETS
from kube_sandbox.cluster import availability, history, selectors
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.daemon_sets import pods as daemon_pods
from kube_sandbox.cluster.daemon_sets import rollout
from kube_sandbox.cluster.daemon_sets.rollout import Plan
from kube_sandbox.cluster.history import REVISION_LABEL, History
from kube_sandbox.cluster.pod_control import PodControl, in_batches
from kube_sandbox.cluster.views import Node, Pod
from kube_sandbox.cluster.work import Key, NotYet, work
from kube_sandbox.cluster.workload_views import ControllerRevision, DaemonSet

_SELECTS_ALL = "This daemon set is selecting all pods. A non-empty selector is required."


class DaemonSets:
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        self._client = caches.client
        self._clock = caches.clock
        self._sets = caches.daemon_sets
        self._nodes = caches.nodes
        self._control = PodControl(caches, recorder, DAEMON_SETS)
        self._history = History(caches, DAEMON_SETS, label=REVISION_LABEL)
        self._queue: WorkQueue[Key] = WorkQueue()
        caches.daemon_sets.add_handler(self._set_changed)
        caches.pods.add_handler(self._pod_changed)
        caches.nodes.add_handler(self._node_changed)

    async def run(self) -> None:
        await work(self._queue, self._reconcile, workers=4)

    def _set_changed(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if new is not None:
            self._queue.add(Key(new.metadata.namespace, new.metadata.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            if (owner := pod.metadata.controller) is not None:
                if owner.kind == DAEMON_SETS.kind:
                    self._queue.add(Key(pod.metadata.namespace, owner.name))
                continue
            for ds in self._sets.all():  # an orphan: somebody may want it
                if ds.metadata.namespace == pod.metadata.namespace and selectors.matches(
                    ds.spec.selector, pod.metadata.labels
                ):
                    self._queue.add(Key(ds.metadata.namespace, ds.metadata.name))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels:
            for ds in self._sets.all():
                self._queue.add(Key(ds.metadata.namespace, ds.metadata.name))

    async def _reconcile(self, key: Key) -> None:
        ds = self._sets.get(*key)
        if ds is None or ds.metadata.deletion_timestamp is not None:
            return
        metadata, spec = ds.metadata, ds.spec
        if selectors.is_empty(spec.selector):
            self._control.tell(metadata, "Warning", "SelectingAll", _SELECTS_ALL)
            return
        pods = await self._control.claim(metadata, spec.selector)
        kept = await self._history.of(ds)
        revision, collisions = await self._history.current(ds, kept, ds.status.collision_count, metadata.annotations)
        hash_ = revision.metadata.labels.get(REVISION_LABEL, "")
        nodes, placed, now = self._nodes.all(), daemon_pods.by_node(pods), self._clock()
        plan = rollout.manage(ds, nodes, placed, hash_, now)
        if not plan.create and not plan.delete:
            plan = rollout.update(ds, nodes, placed, hash_, now)
        error: KubernetesError | None = None
        try:
            await self._carry_out(ds, plan, hash_)
        except KubernetesError as caught:
            error = caught
        await self._write_status(key, hash_, collisions)
        old = [one for one in kept if one.metadata.uid != revision.metadata.uid]
        await self._clean_up(ds, old, pods)
        if error is not None:
            raise error
        if ended := rollout.failed(plan.delete):
            raise NotYet(f"{len(ended)} pods that ended are replaced, ever more slowly")

    async def _carry_out(self, ds: DaemonSet, plan: Plan, hash_: str) -> None:
        async def create(node: str) -> None:
            await self._control.create(ds.metadata, daemon_pods.body(ds, node, hash_))

        for pod in rollout.failed(plan.delete):
            how = "succeeded" if pod.status.phase == "Succeeded" else "failed"
            reason = "SucceededDaemonPod" if how == "succeeded" else "FailedDaemonPod"
            end = "delete it" if how == "succeeded" else "kill it"
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            text = f"Found {how} daemon pod {name} on node {pod.spec.node_name}, will try to {end}"
            self._control.tell(ds.metadata, "Normal" if how == "succeeded" else "Warning", reason, text)
        try:
            await in_batches([lambda node=node: create(node) for node in plan.create])  # type: ignore[misc]
        finally:
            await self._control.delete_all(ds.metadata, plan.delete)

    async def _clean_up(self, ds: DaemonSet, old: list[ControllerRevision], pods: list[Pod]) -> None:
        hashes = {pod.metadata.labels.get(REVISION_LABEL) for pod in pods}
        live = {one.metadata.name for one in old if one.metadata.labels.get(REVISION_LABEL) in hashes}
        for revision in history.expendable(old, live, ds.spec.revision_history_limit, counts_live=True):
            await self._history.delete(revision)

    async def _write_status(self, key: Key, hash_: str, collisions: int) -> None:
        """From the caches as they are by now."""
        ds = self._sets.get(*key)
        if ds is None:
            return
        now = self._clock()
        pods = self._control.owned(ds.metadata, ds.spec.selector)
        placed = daemon_pods.by_node(pods)
        status = rollout.status(ds, self._nodes.all(), placed, hash_, collisions, now)
        if patch := status_patch(status, ds.status):
            body = {"metadata": {"uid": ds.metadata.uid}, "status": patch}
            written = await self._client.patch(
                DAEMON_SETS, body, key.name, key.namespace, subresource="status", as_=DaemonSet
            )
            self._sets.observe(written)
        if (wait := availability.next_change(pods, ds.spec.min_ready_seconds, now)) is not None:
            self._queue.add_after(key, wait)
