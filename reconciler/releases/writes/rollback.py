"""Releases the pod template of an older version again, and gives it back to the clients that owned it then."""

from collections.abc import Callable, Sequence

from altershield.api import labels, released_by
from altershield.api.change_workload import SourceRef
from altershield.api.json_patch import Operation, at_version, label_path
from altershield.workloads import BY_KIND, held
from altershield.workloads.adapter import Object
from altershield.workloads.applied import LAST_APPLIED, last_applied, managed_fields
from altershield.workloads.held_managers import freed
from altershield.workloads.workload import Workload
from kube_base.access.bodies import decode
from kube_base.access.errors import (
    ApiError,
    ConflictError,
)
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.writes.temporary import is_temporary

_VERSION = label_path(labels.VERSION)
_ANNOTATIONS = "/metadata/annotations"


class Refused(Exception):  # noqa: N818  (a result that ends the reconcile, not an error)
    """The API server refuses the write that releases an older template."""

    def __init__(self, cause: ApiError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class RollbackWriter:
    """`clock` returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, live: LiveReader, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._clock = clock

    async def release_again(self, workload: Workload, target: SourceRef, by: str) -> None:
        """Give the workload the template of one of its revisions, as `kubectl rollout undo` does.

        Workload and template are read once more, so that exactly the decided template replaces exactly the decided
        version. The labels are set as the gatekeeper sets them, so that a rollback also works while no gatekeeper is
        available. The annotation of `kubectl apply` gets the template that it had with that version: otherwise, the
        next `kubectl apply` would not remove the fields that only the failed version had removed.

        `by`: the user who requested the rollback. If it is empty, the gatekeeper names the reconciler.

        ConflictError: the objects have changed since the decision. Refused: the API server refuses the write.
        """
        present = await self._live.workload(workload)
        if present.workload.version != workload.version or present.workload.fingerprint != workload.fingerprint:
            where = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
            raise ConflictError(f"{where}: another version was released since it was read", code=409)
        template = await self._live.template(workload, target)
        adapter, raw = BY_KIND[workload.group_kind], decode(present.raw, Object)
        operations: list[Operation] = [
            at_version(present.workload.metadata.resource_version),
            *adapter.release(template),
            *held.restoration(adapter, raw),
        ]
        version = target.version or target.fingerprint
        operations.append({"op": "add", "path": _VERSION, "value": version})
        annotations = {released_by.ANNOTATION: released_by.encode(by, version, self._clock())} if by else {}
        applied = await self._live.applied(workload, target)
        manifest = last_applied(raw, applied) if applied is not None else None
        if manifest is not None:
            annotations[LAST_APPLIED] = manifest
        if present.annotations:
            operations += [
                {"op": "add", "path": label_path(key, _ANNOTATIONS), "value": value}
                for key, value in annotations.items()
            ]
        elif annotations:
            operations.append({"op": "add", "path": _ANNOTATIONS, "value": annotations})
        if present.workload.processed:
            operations.append({"op": "remove", "path": label_path(labels.DEFENSE_STATUS)})
        refusal = await self._write(workload, operations)
        if refusal is not None:
            raise Refused(refusal) from refusal

    async def restore_managers(self, workload: Workload, target: SourceRef) -> str:
        """Give the template that was released again back to the field managers that owned it when the workload had it
        before. A write cannot do this together with a change of the template, because the API server computes the
        owners of changed fields itself. A second call changes nothing.

        Returns why the API server refuses the write; empty if it does not. ConflictError: the workload has changed.
        """
        raw = await self._live.raw(workload)
        entries = managed_fields(raw, await self._live.applied(workload, target))
        metadata = {**raw["metadata"], "managedFields": entries or raw["metadata"].get("managedFields")}
        entries = freed({"metadata": metadata}, BY_KIND[workload.group_kind].held_fields) or entries
        if entries is None:
            return ""
        operations: list[Operation] = [
            at_version(raw["metadata"]["resourceVersion"]),
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        ]
        refusal = await self._write(workload, operations)
        return str(refusal) if refusal is not None else ""

    async def _write(self, workload: Workload, operations: Sequence[Operation]) -> ApiError | None:
        """Patch the workload. Returns the error if the API server refuses the patch; raises errors that may be
        temporary."""
        try:
            await self._writer.patch(self._caches.workloads[workload.group_kind], workload, operations)
        except ApiError as error:
            if is_temporary(error):
                raise
            return error
        return None
