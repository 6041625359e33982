"""Keeps releases in the history of their workload, and deletes the oldest ones."""

import logging
import time
from collections.abc import Sequence

import msgspec

from altershield.api import released_by
from altershield.api.json_patch import Operation, label_path
from altershield.api.kinds import ChangeWorkloadStatus
from altershield.api.meta import OwnerReference
from altershield.api.released_by import ReleasedBy
from altershield.kube.errors import (
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
from altershield.releases.history import (
    ANNOTATION,
    RESOURCE,
    Entry,
    encoded,
    entry_labels,
    manifest,
    read,
    surplus,
)
from altershield.releases.release import version as version_of
from altershield.workloads import BY_KIND
from altershield.workloads.adapter import Object
from altershield.workloads.workload import Workload
from reconciler.machinery.caches import Caches
from reconciler.machinery.writer import Writer
from reconciler.releases.history import in_use, record
from reconciler.releases.live_reader import LiveReader, owns
from reconciler.releases.projection import Release

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
_PATIENCE = 5.0  # seconds for which an entry is tried again that the API server fails to store
_FORGOTTEN = 60.0  # seconds after a failure until the next one counts as the first
_REMEMBERED = 1024


class HistoryWriter:
    """`limit`: how many versions that passed are kept for each workload, and as many others. 0: none."""

    def __init__(self, caches: Caches, writer: Writer, live: LiveReader, limit: int) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._limit = limit
        self._failing: dict[str, tuple[float, float]] = {}
        """By uid of a release whose entry the API server fails to store: the times of the first and of the last
        failure, by the monotonic clock."""

    async def keep(self, release: Release, workload: Workload, status: ChangeWorkloadStatus) -> None:
        """Keep the release, whose status is about to be `status`. To repeat it changes nothing.

        If the API server refuses the entry, a warning is logged: a quota, a policy, a webhook that is down, or a
        finalizer of a deleted entry must not keep releases from being suspended or rolled back. An error that may be
        temporary, also a ConflictError (decide again), is raised for a few seconds only.
        """
        if not self._limit:
            return
        uid = release.metadata.uid
        try:
            await self._keep(release, workload, status)
            self._failing.pop(uid, None)
        except (ApiError, UnreachableError) as error:
            if isinstance(error, _RETRIED) and not self._is_tried_enough(uid):
                raise
            self._failing.pop(uid, None)
            _log(workload, "could not keep a version in the history", str(error))

    def _is_tried_enough(self, uid: str) -> bool:
        """Whether the entry of this release has not been stored for too long."""
        if len(self._failing) >= _REMEMBERED:
            self._failing.clear()
        now = time.monotonic()
        since, last = self._failing.get(uid, (now, now))
        if now - last > _FORGOTTEN:
            since = now
        self._failing[uid] = since, now
        return now - since >= _PATIENCE

    async def _keep(self, release: Release, workload: Workload, status: ChangeWorkloadStatus) -> None:
        entries = await self._adopted(workload)
        known = next((each for each in entries if each.version == version_of(release)), None)
        if known is None:
            kept = await self._create(release, workload, status)
        else:
            entries.remove(known)
            kept = await self._update(known, release, workload, status)
        if kept is not None:
            entries.append(kept)
        current = [each for each in self._caches.releases_of(workload) if version_of(each) == workload.version]
        used = in_use(workload, [*current, msgspec.structs.replace(release, status=status)])
        for each in surplus(entries, self._limit, used):
            await self._writer.delete(RESOURCE, each.metadata)

    async def _adopted(self, workload: Workload) -> list[Entry]:
        """The workload's entries. Those of a workload of the same kind and name that was deleted without them
        (`--cascade=orphan`) are adopted: the ChangeWorkloads are, too."""
        found = []
        for entry in await self._live.history(workload):
            orphaned = not entry.metadata.owner_references
            if orphaned and entry.is_named_for(workload.kind, workload.metadata.name):
                reference = msgspec.to_builtins(_owner(workload))
                await self._patch(entry, [{"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}])
            elif not owns(workload, entry):
                continue
            found.append(entry)
        return found

    async def _create(self, release: Release, workload: Workload, status: ChangeWorkloadStatus) -> Entry | None:
        """Create the entry of a version. None if none is kept for this workload."""
        read_template = await self._template(release, workload)
        if read_template is None:
            return None
        template, by = read_template
        obj = manifest(
            _owner(workload),
            workload.metadata.namespace,
            version_of(release),
            template,
            record(release, status, by, self._caches.batches_of(release)),
            release.spec.workload_generation,
        )
        metadata = workload.metadata
        try:
            made = await self._writer.create_uncached(RESOURCE, obj, metadata.namespace)
        except AlreadyExistsError:
            other = await self._live.entry(workload, obj["metadata"]["name"])
            # It has no label, or it is of a deleted workload of the same name. Anybody may have created an object
            # without the label: the admission policy is about labelled ones.
            if owns(workload, other) or ANNOTATION in other.metadata.annotations:
                await self._writer.delete(RESOURCE, other.metadata)
            else:
                _log(workload, "could not keep a version in the history", f"{other.metadata.name} is another object")
                return None
            raise  # decide again
        return read(made)

    async def _template(self, release: Release, workload: Workload) -> tuple[Object, ReleasedBy | None] | None:
        """The pod template of the release, and who released it. None if it does not exist any more, or must not be
        kept."""
        live = await self._live.workload(workload)
        if live.selects(entry_labels(workload.metadata.name)):
            # its controller would take the entry as a revision of its own
            _log(
                workload, "keeps no history: its selector matches all objects without certain labels", workload.selector
            )
            return None
        if live.workload.fingerprint == workload.fingerprint and workload.version == version_of(release):
            return live.template, released_by.decode(live.annotations.get(released_by.ANNOTATION), workload.version)
        if workload.version == version_of(release):
            raise ConflictError("another version was released since the decision", code=409)
        if not release.status.source.name:
            return None  # no controller created an object with its template
        try:
            return await self._live.template(workload, release.status.source), None
        except ConflictError as error:
            _log(workload, "could not keep a version in the history: its pod template does not exist", str(error))
            return None

    async def _update(self, entry: Entry, release: Release, workload: Workload, status: ChangeWorkloadStatus) -> Entry:
        """Update the entry of a version. Who released it is read again only if it was released again."""
        generation = release.spec.workload_generation
        by: ReleasedBy | None = ReleasedBy(entry.record.released_by, entry.record.released, entry.version)
        if entry.revision != generation and workload.version == entry.version:
            live = await self._live.workload(workload)
            by = released_by.decode(live.annotations.get(released_by.ANNOTATION), entry.version)
        wanted = record(release, status, by, self._caches.batches_of(release), entry.record.actions)
        if wanted == entry.record and entry.revision == generation:
            return entry
        annotations = {**entry.metadata.annotations, ANNOTATION: encoded(wanted)}
        operations: list[Operation] = [
            {"op": "add", "path": label_path(ANNOTATION, _ANNOTATIONS), "value": annotations[ANNOTATION]},
            {"op": "replace", "path": "/revision", "value": generation},
        ]
        if not entry.metadata.annotations:
            operations[0] = {"op": "add", "path": _ANNOTATIONS, "value": annotations}
        await self._patch(entry, operations)
        metadata = msgspec.structs.replace(entry.metadata, annotations=annotations)
        return Entry(metadata, entry.version, entry.template, generation)

    async def _patch(self, entry: Entry, operations: Sequence[Operation]) -> None:
        await self._writer.patch_uncached(RESOURCE, entry.metadata, operations)


def _owner(workload: Workload) -> OwnerReference:
    """The owner reference of an entry; `altershield.releases.history` says why it is that of a controller."""
    metadata, adapter = workload.metadata, BY_KIND[workload.kind]
    version, controls = adapter.resource.api_version, adapter.leaves_other_revisions
    return OwnerReference(workload.kind, metadata.name, metadata.uid, version, controller=controls)


def _log(workload: Workload, message: str, cause: str) -> None:
    place = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
    logger.warning(message, extra={"object": place, "cause": cause})
