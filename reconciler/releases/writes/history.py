"""Keeps releases in the history of their workload, and deletes the oldest ones."""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.json_patch import Operation, label_path
from altershield.releases.history import (
    ANNOTATION,
    RESOURCE,
    Entry,
    Evidence,
    Record,
    annotations,
    entry_labels,
    manifest,
    next_number,
    read,
    surplus,
)
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND
from altershield.workloads.adapter import Object
from altershield.workloads.applied import Applied, encoded
from altershield.workloads.workload import Workload
from kube_base.access.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from kube_base.meta import OwnerReference
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.releases.decisions.history import in_use, logged, record, way
from reconciler.releases.reads.live import LiveReader, LiveWorkload, owns
from reconciler.releases.writes.attempts import Attempts

logger = logging.getLogger(__name__)

_ANNOTATIONS = "/metadata/annotations"
_RETRIED = (
    ConflictError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)


class _Template(NamedTuple):
    """A pod template, and what clients stored about it; None if that is not known."""

    template: Object
    applied: Applied | None = None


class HistoryWriter:
    """`limit`: the number of versions that passed and are kept for each workload. The same number of other versions is
    kept. 0: no version is kept."""

    def __init__(self, caches: Caches, writer: Writer, live: LiveReader, limit: int) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._limit = limit
        self._attempts = Attempts()
        """By the uid of the release."""

    async def keep(
        self, release: Release, workload: Workload, status: ChangeWorkloadStatus, evidence: Evidence | None
    ) -> None:
        """Keep the release. `status`: its status that is about to be stored. `evidence`: of a release that ends now. A
        second call changes nothing.

        If the API server refuses the entry, a warning is logged: a quota, a policy, a webhook that is down, or a
        finalizer of a deleted entry must not keep releases from being suspended or rolled back. An error that may be
        temporary is raised for a few seconds only, also a ConflictError (decide again).
        """
        if not self._limit:
            return
        uid = release.metadata.uid
        try:
            await self._keep(release, workload, status, evidence)
            self._attempts.ended(uid)
        except (ApiError, UnreachableError) as error:
            if isinstance(error, _RETRIED) and not self._attempts.failed(uid, time.monotonic()):
                raise
            self._attempts.ended(uid)
            _log(workload, "could not keep a version in the history", str(error))

    async def _keep(
        self, release: Release, workload: Workload, status: ChangeWorkloadStatus, evidence: Evidence | None
    ) -> None:
        entries = await self._adopted(workload)
        known = next((each for each in entries if each.version == version_of(release)), None)
        number = next_number(entries)
        if known is None:
            kept = await self._create(release, workload, status, evidence, number)
        else:
            entries.remove(known)
            kept = await self._update(known, release, workload, status, evidence, number)
        if kept is not None:
            entries.append(kept)
        current = [each for each in self._caches.releases_of(workload) if version_of(each) == workload.version]
        used = in_use(workload, [*current, msgspec.structs.replace(release, status=status)])
        for each in surplus(entries, self._limit, used):
            await self._writer.delete(RESOURCE, each.metadata)

    async def _adopted(self, workload: Workload) -> list[Entry]:
        """The workload's entries. If a workload of the same kind and name was deleted without its entries
        (`--cascade=orphan`), these are adopted, as its ChangeWorkloads are."""
        found = []
        for entry in await self._live.history(workload):
            orphaned = not entry.metadata.owner_references
            if orphaned and entry.is_named_for(workload.group_kind, workload.metadata.name):
                reference = msgspec.to_builtins(_owner(workload))
                await self._patch(entry, [{"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}])
            elif not owns(workload, entry):
                continue
            found.append(entry)
        return found

    async def _create(
        self,
        release: Release,
        workload: Workload,
        status: ChangeWorkloadStatus,
        evidence: Evidence | None,
        number: int,
    ) -> Entry | None:
        """Create the entry of a version. `number`: of its release. None if the version is not kept."""
        known = await self._template(release, workload)
        if known is None:
            return None
        obj = manifest(
            _owner(workload),
            workload.metadata.namespace,
            version_of(release),
            known.template,
            annotations(self._record(release, workload, status, evidence, None, number), known.applied),
            release.spec.workload_generation,
        )
        metadata = workload.metadata
        try:
            made = await self._writer.create_uncached(RESOURCE, obj, metadata.namespace)
        except AlreadyExistsError:
            other = await self._live.entry(workload, obj["metadata"]["name"])
            # The object has no label, or belongs to a deleted workload of the same name. Anybody may have created an
            # object without the label, because the admission policy matches only objects with the label.
            if owns(workload, other) or ANNOTATION in other.metadata.annotations:
                await self._writer.delete(RESOURCE, other.metadata)
            else:
                cause = f"the {RESOURCE.kind} {other.metadata.name} exists already and is no entry of the history"
                _log(workload, "could not keep a version in the history", cause)
                return None
            raise  # decide again
        return read(made)

    async def _template(self, release: Release, workload: Workload) -> _Template | None:
        """The pod template of the release. None if it does not exist any more, or must not be kept."""
        live = await self._live.workload(workload)
        if live.selects(entry_labels(workload.metadata.name)):
            # the workload's controller would adopt the entry as a revision of its own
            _log(
                workload,
                "no history is kept for the workload: its selector matches all objects without certain labels",
                workload.selector,
            )
            return None
        if live.workload.fingerprint == workload.fingerprint and workload.version == version_of(release):
            return _Template(live.template, _applied(live))
        if workload.version == version_of(release):
            where = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
            raise ConflictError(f"{where}: another version was released since the decision", code=409)
        if not release.status.source.name:
            return None  # no controller created an object with its template
        try:
            return _Template(await self._live.template(workload, release.status.source))
        except ConflictError as error:
            _log(workload, "could not keep a version in the history: its pod template does not exist", str(error))
            return None

    def _record(
        self,
        release: Release,
        workload: Workload,
        status: ChangeWorkloadStatus,
        evidence: Evidence | None,
        entry: Entry | None,
        number: int,
    ) -> Record:
        """The record to store. `entry`: the entry of the version, if there is one."""
        known = entry.record if entry is not None else None
        again = entry is not None and entry.revision != release.spec.workload_generation
        others = [each for each in self._caches.releases_of(workload) if each.metadata.uid != release.metadata.uid]
        actions = known.actions if known is not None else ()
        found = record(release, status, self._caches.batches_of(release), actions, evidence)
        return logged(found, known, way(release, status, others, again=again), number, again=again)

    async def _update(
        self,
        entry: Entry,
        release: Release,
        workload: Workload,
        status: ChangeWorkloadStatus,
        evidence: Evidence | None,
        number: int,
    ) -> Entry:
        """Update the entry of a version. `number`: of its release, if it was released again. What clients stored about
        the template is known only while the workload has the version."""
        generation, kept = release.spec.workload_generation, entry.applied
        if workload.version == entry.version:
            live = await self._live.workload(workload)
            if live.workload.version == entry.version:
                kept = _applied(live) or kept
        wanted = annotations(self._record(release, workload, status, evidence, entry, number), kept)
        if wanted.items() <= entry.metadata.annotations.items() and entry.revision == generation:
            return entry
        changed = {**entry.metadata.annotations, **wanted}
        operations: list[Operation] = [
            {"op": "add", "path": label_path(key, _ANNOTATIONS), "value": value} for key, value in wanted.items()
        ]
        if not entry.metadata.annotations:
            operations = [{"op": "add", "path": _ANNOTATIONS, "value": changed}]
        await self._patch(entry, [*operations, {"op": "replace", "path": "/revision", "value": generation}])
        metadata = msgspec.structs.replace(entry.metadata, annotations=changed)
        return Entry(metadata, entry.version, entry.template, generation)

    async def _patch(self, entry: Entry, operations: Sequence[Operation]) -> None:
        await self._writer.patch_uncached(RESOURCE, entry.metadata, operations)


def _applied(live: LiveWorkload) -> Applied | None:
    """What clients stored about the template. None: it belongs to AlterShield, or is too long to be kept."""
    found = live.applied
    if found is not None and not encoded(found):
        _log(live.workload, "could not keep what clients stored about a pod template", "it is too long")
        return None
    return found


def _owner(workload: Workload) -> OwnerReference:
    """The owner reference of an entry. `altershield.releases.history` explains when the owner is the controller."""
    metadata, adapter = workload.metadata, BY_KIND[workload.group_kind]
    version, controls = adapter.resource.api_version, adapter.leaves_other_revisions
    return OwnerReference(workload.kind, metadata.name, metadata.uid, version, controller=controls)


def _log(workload: Workload, message: str, cause: str) -> None:
    place = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
    logger.warning(message, extra={"object": place, "cause": cause})
