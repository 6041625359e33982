"""A workload that is released in steps: a gatekeeper that admits its changes, its controller, and the reconciler."""

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, cast

import jsonpatch
import msgspec

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import SourceRef
from altershield.api.json_patch import Operation
from altershield.api.policy import AppliedPolicy
from altershield.api.rollout import Rollout, RolloutStatus
from altershield.rollout.admission import Admitted, Change, State, Wanted, admit, follows
from altershield.rollout.obstacles import obstacle
from altershield.workloads import held
from altershield.workloads.held import steps, values, with_values
from altershield.workloads.hold import Hold
from altershield.workloads.workload import Workload
from kube_base.access.errors import ConflictError, ForbiddenError
from kube_base.meta import ObjectMeta
from kube_base.resources import GroupKind
from kube_base.times import rfc3339
from reconciler.cluster.release import Release
from reconciler.releases.decisions import steps as step_decisions
from reconciler.releases.terms.effects import After, Before, EndHold, Evict, FreeFields, SetHold
from reconciler.releases.terms.snapshot import Snapshot, Target
from reconciler.releases.writes.holds import HoldRefused, HoldWriter
from tests.support import workloads
from tests.unit.altershield.rollout.world import applied
from tests.unit.reconciler.releases.world import Conflicted, SimPod, World, fingerprint

from .controllers import NAME, Controller, Seen

Object = dict[str, Any]
_CALLED_AGAIN = 60
_OF_WORKLOAD = {"suspend", "resume", "allow repair", "label", "release again"}
"""The reconciler's writes of labels and templates, which the API server refuses if the version has changed."""


class SteppedWorld(World):
    """`spec`: the stored one, without the replicas and the template. `user`: the spec that the user wants."""

    def __init__(
        self, kind: str, spec: Object, *, replicas: int, rollout: Rollout, observe: float, **rules: Any
    ) -> None:
        super().__init__(kind, replicas=replicas, observe=observe, start_timeout=120)
        self.spec, self.user = spec, spec
        self.annotation: str | None = None
        self.resource_version = 1
        self.rollout = rollout
        self.policy = AppliedPolicy(namespace="shop", name="web", generation=1, rollout=rollout, **rules)
        self.wanted: Wanted | None = Wanted(rollout, "shop/web@1")
        self.taken: Object = {}
        """The fields that another webhook has changed. A value that was there already is no change."""
        self.gatekeeper = True
        self.refuses_holds = ""
        """Why a policy refuses what the reconciler writes into the workload."""
        self.refuses_evictions = False
        self.controller = Controller()
        self.nodes = [f"node-{number}" for number in range(replicas)] if kind == "DaemonSet" else []
        self.seen_manifest: Object | None = None
        """What the cache of the reconciler has of the workload; None: it is up to date."""
        self._late_pods: dict[str, SimPod] | None = None
        self._by_reconciler = self._reconciling = self._reads_live = False
        self._holds = HoldWriter(
            cast(Any, self), cast(Any, self), cast(Any, self)
        )  # `raw`, `patch`, `try_patch` and `evict` below

    # the stored workload

    @property
    def version(self) -> str:
        """The version label; for the reconciler, as its cache has it."""
        if self._reconciling and self.seen_manifest is not None:
            return str(self.seen_manifest["metadata"]["labels"].get(labels.VERSION, ""))
        return self.own_labels.get(labels.VERSION, "")

    @property
    def hold(self) -> Hold | None:
        return steps({ROLLOUT: self.annotation}) if self.annotation is not None else None

    @property
    def steps_status(self) -> RolloutStatus:
        """The steps of the present version; empty without a ChangeWorkload."""
        found = self.releases.get(self.version)
        return found.status.rollout if found is not None else RolloutStatus()

    def live_manifest(self) -> Object:
        version = {key: value for key, value in self.own_labels.items() if key == labels.VERSION}
        metadata = {
            "namespace": "default",
            "uid": "workload-uid",
            "resourceVersion": str(self.resource_version),
            "generation": self.generation,
            "labels": dict(self.own_labels),
            "annotations": {} if self.annotation is None else {ROLLOUT: self.annotation},
        }
        made = workloads.manifest(
            self.kind, NAME, self.image, replicas=self.replicas, template_labels=version, metadata=metadata, **self.spec
        )
        return {**made, "status": self.controller.status(self._seen())}

    def manifest(self) -> Object:
        if self.seen_manifest is not None:
            return self.seen_manifest
        return self.live_manifest()

    def _seen(self) -> Seen:
        return Seen(
            self.kind, self.image, self.replicas, self.spec, self.generation, self.t, self.pods, self.nodes,
            self._create, self._delete, self._update,
        )  # fmt: skip

    # requests

    def change(
        self,
        *,
        image: str = "",
        spec: Object | None = None,
        annotation: str | None = "kept",
        by_reconciler: bool = False,
        other: Object | None = None,
    ) -> Admitted | None:
        """An UPDATE. `image`: that of another template. `other`: the fields that a webhook changes after AlterShield's.
        Without a gatekeeper, a release is refused, and other changes are stored as they are."""
        old = State(self.annotation, self.spec) if self.image else None
        sent = State(self.annotation if annotation == "kept" else annotation, self.spec if spec is None else spec)
        released = image if image and image != self.image else ""
        first = self._admit(old, sent, released, by_reconciler, self.t)
        final = applied(sent, first)
        if other:
            present = values(self.adapter, final.spec)
            self.taken = {path: value for path, value in other.items() if value != present[path]}
            final = State(final.annotation, with_values(final.spec, other))
        again = applied(final, self._admit(old, final, released, by_reconciler, self.t + 1))
        assert other or again == final, "a second call changes nothing"
        checked = self._admit(old, again, released, by_reconciler, self.t + 1)
        assert checked is None or follows(again, checked), "the validating handler refuses what the mutating one made"
        self.keep(again)
        return first

    def after_a_request(self) -> State:
        """The workload after a request that changes nothing: fields that were changed while no gatekeeper answered are
        held again."""
        stored = State(self.annotation, self.spec)
        return applied(stored, self._admit(stored, stored, "", False, self.t))

    def _admit(self, old: State | None, new: State, image: str, by_reconciler: bool, time: float) -> Admitted | None:
        return admit(
            Change(
                adapter=self.adapter,
                old=old,
                new=new,
                version=fingerprint(image) if image else "",
                base=fingerprint(self.image) if image and self.image else "",
                by_reconciler=by_reconciler,
                wanted=self.wanted
                if image and not by_reconciler and old is not None and self.settings.rollout
                else None,
                obstacle=obstacle(replicas=self.replicas, created=old is None),
                labels={},
                replicas=self.replicas,
                failed=len(self.of(self.image)) if self.suspended else 0,
                time=rfc3339(time),
                since=rfc3339(time - _CALLED_AGAIN),
            )
        )

    def keep(self, state: State) -> None:
        if state.spec != self.spec:
            self.generation += 1
        self.spec, self.annotation = state.spec, state.annotation
        self.resource_version += 1

    def release(self, image: str, *, version: str = "", other: Object | None = None) -> None:
        """Release this image. What the reconciler releases has the user's own fields."""
        spec: Object | None = None
        annotation: str | None = "kept"
        if self._by_reconciler and self.hold is not None:
            raw = jsonpatch.apply_patch(self.live_manifest(), held.restoration(self.adapter, self.live_manifest()))
            spec = {key: raw["spec"][key] for key in raw["spec"] if key not in ("replicas", "selector", "template")}
            annotation = None
        self.change(image=image, spec=spec, annotation=annotation, by_reconciler=self._by_reconciler, other=other)
        reconciling, self._reconciling = self._reconciling, False
        super().release(image, version=version)
        self._reconciling = reconciling

    def _release_again(self, target: SourceRef) -> None:
        self._by_reconciler = True
        try:
            super()._release_again(target)
        finally:
            self._by_reconciler = False

    # what HoldWriter needs

    @property
    def workloads(self) -> dict[GroupKind, None]:
        return {self.adapter.resource.group_kind: None}

    async def raw(self, known: Workload) -> Object:
        if known.version != self.own_labels.get(labels.VERSION, ""):
            raise ConflictError("another version was released", code=409)
        return self.live_manifest()

    async def try_patch(self, informer: object, workload: Workload, operations: Sequence[Operation]) -> bytes:
        if self.refuses_holds:
            raise ForbiddenError(self.refuses_holds, code=403)
        made = self._patched(operations)
        if self.gatekeeper:
            found = applied(made, self._admit(State(self.annotation, self.spec), made, "", True, self.t))
            made = found
        return msgspec.json.encode({"metadata": {}, "spec": made.spec})

    async def patch(self, informer: object, workload: Workload, operations: Sequence[Operation]) -> None:
        if self.refuses_holds:
            raise ForbiddenError(self.refuses_holds, code=403)
        made = self._patched(operations)
        self._write("hold")
        if self.gatekeeper:
            self.change(spec=made.spec, annotation=made.annotation, by_reconciler=True)
        else:
            self.keep(made)

    async def evict(self, metadata: ObjectMeta) -> None:
        if self.refuses_evictions:
            raise ForbiddenError("a budget refuses it", code=403)
        self._write("evict")
        pod = self.pods.get(metadata.uid)
        if pod is not None and not pod.deleting:
            self.on_evict(pod)
            self.terminate(pod)
            super().touch(pod)  # it is read at once, into a cache that is late too

    def on_evict(self, pod: SimPod) -> None:
        """Called before a pod is evicted."""

    def _patched(self, operations: Sequence[Operation]) -> State:
        try:
            raw = jsonpatch.apply_patch(self.live_manifest(), list(operations))
        except jsonpatch.JsonPatchTestFailed as error:
            raise ConflictError(str(error), code=409) from error
        spec = {key: value for key, value in raw["spec"].items() if key not in ("replicas", "selector", "template")}
        return State(raw["metadata"]["annotations"].get(ROLLOUT), spec)

    # the reconciler

    def _label(self, obj: Any, write: str, label: str, value: str) -> None:
        super()._label(obj, write, label, value)
        if obj.metadata.uid in self.pods:
            super().touch(self.pods[obj.metadata.uid])  # the answers to its own writes go into the cache

    def _change_workload(self, release: Release, effect: Before) -> None:
        if isinstance(effect, FreeFields):
            self._write("free fields")
            return
        super()._change_workload(release, effect)

    def _change_after_the_status(self, effect: After) -> None:
        match effect:
            case SetHold(wanted):
                self._done(self._holds.set(self.workload, wanted))
            case Evict(pod):
                self._done(self._holds.evict(pod))
            case EndHold():
                self._done(self._holds.end(self.workload))
            case _:
                super()._change_after_the_status(effect)

    @staticmethod
    def _done(work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that never waits."""
        try:
            work.send(None)
        except StopIteration:
            return
        except ConflictError as error:
            raise Conflicted(str(error)) from error
        raise AssertionError("it waits")

    def _reconcile_release(self) -> None:
        if not self.settings.rollout and self.hold is not None:
            self._write("let go")
            operations = held.restoration(self.adapter, self.live_manifest())
            made = self._patched(operations)
            self.keep(made)
        self._reconciling, before = True, (dict(self.own_labels), self.resource_version)
        try:
            super()._reconcile_release()
        finally:
            self._reconciling = False
            if self.late and before != (self.own_labels, self.resource_version):
                self.seen_manifest = self.live_manifest()  # the answers to its own writes go into the cache

    def _write(self, what: str) -> None:
        if what in _OF_WORKLOAD and self._reconciling and self.version != self.own_labels.get(labels.VERSION, ""):
            raise Conflicted("another version was released")
        super()._write(what)

    def _begin(self, workload: Workload, release: Release | None, others: list[Release]) -> None:
        for each in others:
            ended = step_decisions.superseded(each, self.now)
            if ended is not None and not workload.processed:
                self._write("supersede")
                whole = next(found for found in self.releases.values() if found.metadata.name == each.metadata.name)
                self._store(msgspec.structs.replace(whole, status=ended))
        known = workload.steps
        rollout = known.rollout if known is not None else self.rollout
        self.policy = msgspec.structs.replace(self.policy, rollout=rollout)
        super()._begin(workload, release, others)

    def _go_on(self, workload: Workload, release: Release, others: list[Release]) -> None:
        self._reads_live = True  # before it fails a release for its pods, it asks the API server for them
        try:
            super()._go_on(workload, release, others)
        except HoldRefused as refusal:
            current = self._projected(self.releases[self.version])
            decision = step_decisions.refused(current, refusal.waiting, str(refusal), self.now)
            self._carry_out(current, workload, decision)
            self.decision = replace(decision, requeue_after=5.0)
        finally:
            self._reads_live = False

    def targets(self, snapshot: Snapshot) -> list[Target]:
        super().touch(*self.pods.values())  # the pods are read, too
        return super().targets(snapshot)

    # pods

    def _create(self, image: str, number: int | None, node: str) -> None:
        (pod,) = self.make(1, image, number=number)
        pod.node = node or pod.node
        self.touch(pod)
        self.on_create(pod)

    def on_create(self, pod: SimPod) -> None:
        """Called after the controller created a pod."""

    def _delete(self, uid: str) -> None:
        pod = self.pods[uid]
        self.on_delete(pod)
        self.terminate(pod)

    def on_delete(self, pod: SimPod) -> None:
        """Called before the controller deletes a pod."""

    def _update(self, uid: str) -> None:
        pod = self.pods[uid]
        self.on_delete(pod)
        self.update_in_place(pod)
        self.on_create(pod)

    def terminate(self, pod: SimPod) -> None:
        pod.deleting = True
        pod.ready = False
        self.touch(pod)

    # late caches

    def fall_behind(self) -> None:
        """From now on, the reconciler's caches get no events."""
        if self.seen_manifest is None:
            self.seen_manifest = self.live_manifest()
            self._late_pods = {}

    def catch_up(self) -> None:
        late, self.seen_manifest, self._late_pods = self._late_pods, None, None
        for uid, pod in (late or {}).items():
            if uid in self.pods:
                self.touch(pod)
            elif self.groups is not None:
                self.groups.remove_pod(uid)

    def die(self) -> None:
        """A new leader has read everything."""
        self.catch_up()
        super().die()

    @property
    def late(self) -> bool:
        return self._late_pods is not None

    def touch(self, *pods: SimPod) -> None:
        if self._late_pods is not None and not self._reads_live:
            self._late_pods.update({pod.uid: pod for pod in pods})
            return
        super().touch(*pods)

    def remove(self, *pods: SimPod) -> None:
        if self._late_pods is None:
            super().remove(*pods)
            return
        for pod in pods:
            self.pods.pop(pod.uid, None)
            self._late_pods[pod.uid] = pod
