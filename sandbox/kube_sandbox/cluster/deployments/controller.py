"""The Deployment controller: writes the ReplicaSets and the status of each Deployment.

The decisions are in `revisions` (which ReplicaSet is the new one), `rollout` (the sizes) and `progress` (the status).
This module reads and writes the API. One reconciliation writes the status at most once.
"""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kube_base.access.errors import AlreadyExistsError, ApiError, NamespaceTerminatingError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS
from kube_sandbox.cluster import ownership, selectors, templates
from kube_sandbox.cluster.caches import Caches, status_patch
from kube_sandbox.cluster.controller import WorkloadController
from kube_sandbox.cluster.deployments import progress, revisions, rollout
from kube_sandbox.cluster.deployments.progress import NEW_RS_CREATED, NEW_RS_FOUND, PROGRESSING, RS_CREATE_ERROR
from kube_sandbox.cluster.deployments.revisions import REVISION
from kube_sandbox.cluster.kinds import Deployment, DeploymentStatus, Object, Pod, ReplicaSet, find
from kube_sandbox.cluster.ownership import OWNER
from kube_sandbox.cluster.work import Key


class _Family(NamedTuple):
    """The ReplicaSets of a Deployment."""

    new: ReplicaSet | None
    old: Sequence[ReplicaSet]

    @property
    def all(self) -> list[ReplicaSet]:
        return [*self.old, *([self.new] if self.new else [])]

    def with_(self, rs: ReplicaSet) -> "_Family":
        """A copy in which `rs` replaces the ReplicaSet with the same uid."""
        if self.new and rs.metadata.uid == self.new.metadata.uid:
            return self._replace(new=rs)
        old = [rs if rs.metadata.uid == other.metadata.uid else other for other in self.old]
        return self._replace(old=old)


class Deployments(WorkloadController[Deployment]):
    def __init__(self, caches: Caches, recorder: EventRecorder) -> None:
        super().__init__(caches, DEPLOYMENTS, caches.replica_sets, workers=8)
        self._replica_sets = caches.replica_sets
        self._pods = caches.pods
        self._recorder = recorder
        self.follow(caches.deployments)
        caches.pods.add_handler(self._pod_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the Deployment when a pod is gone: a Recreate continues after the last old pod."""
        owner = old.metadata.controller if old else None
        if new is not None or old is None or owner is None or owner.kind != REPLICA_SETS.kind:
            return
        rs = self._replica_sets.get(old.metadata.namespace, owner.name)
        deployment = rs.metadata.controller if rs else None
        if deployment is not None:
            self._queue.add(Key(old.metadata.namespace, deployment.name))

    async def _reconcile(self, key: Key) -> None:
        deployment = self._get(key)
        if deployment is None:
            return
        family = _Family(*revisions.split(deployment, await self._claim(deployment)))
        terminating = deployment.metadata.deletion_timestamp is not None
        status = deployment.status
        if not terminating:
            status = progress.with_pause(deployment, status, self._clock())
        family, status = await self._sync_revision(deployment, family, status)

        if terminating:
            compute_status = progress.counted
        elif deployment.spec.paused or rollout.is_scaling(deployment, family.all):
            compute_status = progress.counted
            family = await self._scale(deployment, family, rollout.scaled(deployment, *family))
            if deployment.spec.paused:
                await self._clean_up(deployment, family)
        else:
            compute_status = progress.progressed
            family, status = await self._roll(deployment, family, status)
            if progress.is_complete(deployment, deployment.status):
                await self._clean_up(deployment, family)

        now = self._clock()
        status = compute_status(deployment, status.conditions, family.new, family.old, now)
        await self._write_status(deployment, status, family.new)
        if compute_status is progress.progressed and (wait := progress.next_check(deployment, status, now)) is not None:
            self._queue.add_after(key, wait)

    async def _claim(self, deployment: Deployment) -> list[ReplicaSet]:
        """The ReplicaSets of this Deployment. Adopts matching orphans, and releases those that no longer match."""
        selector = deployment.spec.selector
        return await ownership.claim(self._client, DEPLOYMENTS, deployment.metadata, selector, self._replica_sets)

    async def _sync_revision(
        self, deployment: Deployment, family: _Family, status: DeploymentStatus
    ) -> tuple[_Family, DeploymentStatus]:
        """Copy annotations, revision and minReadySeconds to the new ReplicaSet."""
        new = family.new
        if new is None:
            return family, status
        annotations = revisions.annotations(deployment, new.metadata.annotations, family.old)
        seconds = deployment.spec.min_ready_seconds
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != seconds:
            patch: Object = {
                "metadata": {"annotations": annotations, "resourceVersion": new.metadata.resource_version},
                "spec": {"minReadySeconds": seconds},
            }
            new = await self._patch(new, patch)
        if find(status.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{new.metadata.name}"'
            status = progress.with_progress(deployment, status, "True", NEW_RS_FOUND, message, self._clock())
        return family._replace(new=new), status

    async def _roll(
        self, deployment: Deployment, family: _Family, status: DeploymentStatus
    ) -> tuple[_Family, DeploymentStatus]:
        """Do one step of a release."""
        if deployment.spec.strategy.type == "Recreate":
            if shrink := rollout.recreate(deployment, None, family.old):
                return await self._scale(deployment, family, shrink), status
            if self._has_old_pods(family):
                return family, status
        if family.new is None:
            new, status = await self._create(deployment, family.old, status)
            family = family._replace(new=new)
        else:
            new = family.new
        step = rollout.recreate if deployment.spec.strategy.type == "Recreate" else rollout.rolling
        return await self._scale(deployment, family, step(deployment, new, family.old)), status

    def _has_old_pods(self, family: _Family) -> bool:
        return any(rs.status.replicas > 0 for rs in family.old) or any(
            not pod.ended for rs in family.old for pod in self._pods.by_index(OWNER, rs.metadata.uid)
        )

    async def _create(
        self, deployment: Deployment, old: Sequence[ReplicaSet], status: DeploymentStatus
    ) -> tuple[ReplicaSet, DeploymentStatus]:
        """Create the ReplicaSet of the current template."""
        spec, metadata = deployment.spec, deployment.metadata
        template_hash = templates.pod_template_hash(spec.template, status.collision_count)
        template = templates.with_label(spec.template, templates.HASH_LABEL, template_hash)
        name = templates.replica_set_name(metadata.name, template_hash)
        size = rollout.new_size(deployment, 0, old)
        annotations = revisions.annotations(deployment, {}, old) | rollout.replica_annotations(deployment)
        body = {
            "apiVersion": REPLICA_SETS.api_version,
            "kind": REPLICA_SETS.kind,
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [ownership.controller_reference(DEPLOYMENTS, metadata)],
            },
            "spec": {
                "replicas": size,
                "minReadySeconds": spec.min_ready_seconds,
                "selector": selectors.with_label(spec.selector, templates.HASH_LABEL, template_hash),
                "template": template,
            },
        }
        try:
            rs = await self._replica_sets.create(body, metadata.namespace)
        except AlreadyExistsError:
            return await self._find_or_collide(deployment, name, status), status
        except NamespaceTerminatingError:
            raise
        except ApiError as error:
            message = f'Failed to create new replica set "{name}": {error}'
            self._event(deployment, "Warning", RS_CREATE_ERROR, message)
            failed = progress.with_progress(deployment, status, "False", RS_CREATE_ERROR, message, self._clock())
            await self._write_status(deployment, failed, None)
            raise
        if size > 0:
            self._event(deployment, "Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        message = f'Created new replica set "{name}"'
        return rs, progress.with_progress(deployment, status, "True", NEW_RS_CREATED, message, self._clock())

    async def _find_or_collide(self, deployment: Deployment, name: str, status: DeploymentStatus) -> ReplicaSet:
        """The ReplicaSet that already has the name, if it belongs to this Deployment and template; the cache was late.
        Else raise the collision count, which gives the next attempt another hash, and raise AlreadyExistsError."""
        rs = await self._replica_sets.fetch(name, deployment.metadata.namespace)
        owner = rs.metadata.controller
        ours = owner is not None and owner.uid == deployment.metadata.uid
        if ours and templates.equal(rs.spec.template, deployment.spec.template):
            return rs
        count = (status.collision_count or 0) + 1
        await self._write_status(deployment, replace(status, collision_count=count), None)
        raise AlreadyExistsError(f"the name {name} belongs to another ReplicaSet; retrying with another hash")

    async def _scale(self, deployment: Deployment, family: _Family, scales: Sequence[rollout.Scale]) -> _Family:
        wanted = rollout.replica_annotations(deployment)
        for rs, replicas in scales:
            before = rs.spec.replicas
            if before == replicas and wanted.items() <= rs.metadata.annotations.items():
                continue
            patch: Object = {
                "metadata": {"annotations": wanted, "resourceVersion": rs.metadata.resource_version},
                "spec": {"replicas": replicas},
            }
            family = family.with_(await self._patch(rs, patch))
            if before != replicas:
                direction = "up" if before < replicas else "down"
                text = f"Scaled {direction} replica set {rs.metadata.name} from {before} to {replicas}"
                self._event(deployment, "Normal", "ScalingReplicaSet", text)
        return family

    async def _clean_up(self, deployment: Deployment, family: _Family) -> None:
        for rs in revisions.expendable(deployment, family.old):
            with contextlib.suppress(NotFoundError):
                await self._client.delete(REPLICA_SETS, rs.metadata.name, rs.metadata.namespace, uid=rs.metadata.uid)

    async def _patch(self, rs: ReplicaSet, patch: Object) -> ReplicaSet:
        return await self._replica_sets.patch(patch, rs.metadata.name, rs.metadata.namespace)

    async def _write_status(self, deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None) -> None:
        """Write the status and, through the status endpoint as Kubernetes does, the revision annotation."""
        changed = status_patch(status, deployment.status)
        revision = new.metadata.annotations.get(REVISION) if new else None
        if revision and deployment.metadata.annotations.get(REVISION) != revision:
            await self._patch_status(deployment, changed, annotations={REVISION: revision})
        else:
            await self._patch_status(deployment, changed)

    def _event(self, deployment: Deployment, type_: str, reason: str, message: str) -> None:
        self._recorder.event(ObjectRef.of(DEPLOYMENTS, deployment.metadata), type_, reason, message)
