"""Reads from the API server, for decisions that must not rely on caches that are behind."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import msgspec

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, SourceRef, Written
from altershield.api.managed_fields import ManagedMeta
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.workload_requests import Action
from altershield.releases import history
from altershield.releases.history import Entry
from altershield.workloads import BY_KIND, applied, hold
from altershield.workloads.adapter import Object, template_of
from altershield.workloads.applied import Applied
from altershield.workloads.workload import WireSelector, Workload, fingerprint_of
from kube_base.access.bodies import decode, project
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.access.time_slices import time_slices
from kube_base.resources import Resource
from kube_base.times import unix
from reconciler.cluster.release import Release
from reconciler.releases.findings.ungated import Revision

_RAW = dict[str, Any]
_FEW = 16  # objects with templates in one page; most workloads have fewer


class _Managed(msgspec.Struct):
    metadata: ManagedMeta


class _TemplateSpec(msgspec.Struct):
    template: dict[str, Any]


class _WithTemplate(msgspec.Struct):
    spec: _TemplateSpec


class _SelectorSpec(msgspec.Struct):
    selector: WireSelector = WireSelector()


class _WithSelector(msgspec.Struct):
    spec: _SelectorSpec


class LiveWorkload(NamedTuple):
    """A workload as the API server has it now."""

    workload: Workload
    released_at: float | None
    """When its pod template was last written, Unix seconds; None if it is not known."""
    annotations: Mapping[str, str] = {}
    raw: msgspec.Raw = msgspec.Raw()

    @property
    def template(self) -> Object:
        """Its pod template."""
        return decode(self.raw, _WithTemplate).spec.template

    @property
    def applied(self) -> Applied | None:
        """What clients stored about its pod template; see `altershield.workloads.applied.of`."""
        return applied.of(decode(self.raw, _RAW))

    def selects(self, own: Mapping[str, str]) -> bool:
        """Whether its selector matches these labels."""
        return decode(self.raw, _WithSelector).spec.selector.matches(own)


class LiveReader:
    """All methods raise the errors of the client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def workload(self, known: Workload) -> LiveWorkload:
        """The workload with the uid of `known`. ConflictError if it does not exist any more."""
        adapter, metadata = BY_KIND[known.group_kind], known.metadata
        raw = await self._raw(known)
        found = project(raw, adapter.read, adapter.resource.plural)
        if found.metadata.uid != metadata.uid or found.metadata.deleting:
            raise changed(known)
        managed = decode(raw, _Managed)
        return LiveWorkload(found, managed.metadata.released_at, managed.metadata.annotations, raw)

    async def raw(self, known: Workload) -> Object:
        """The workload as the API server sends it. ConflictError if it does not exist any more, or if another version
        was released."""
        data, adapter = await self._raw(known), BY_KIND[known.group_kind]
        found = project(data, adapter.read, adapter.resource.plural)
        if found.metadata.uid != known.metadata.uid or found.metadata.deleting or found.version != known.version:
            raise changed(known)
        return decode(data, _RAW)

    async def written(self, release: Release) -> tuple[Written, ...]:
        """What releases wrote to guarded fields until this one. The cache does not keep it. Empty if the ChangeWorkload
        does not exist any more."""
        metadata = release.metadata
        try:
            found = await self._client.get(CHANGE_WORKLOADS, metadata.name, metadata.namespace, as_=ChangeWorkload)
        except NotFoundError:
            return ()
        return found.spec.written if found.metadata.uid == metadata.uid else ()

    async def own_pause(self, known: Workload) -> bool:
        """Whether the rollout is paused as AlterShield paused it, and nobody else has changed the fields since."""
        if not known.held:
            return False
        return hold.is_own(await self.raw(known), BY_KIND[known.group_kind].pause())

    async def _raw(self, known: Workload) -> msgspec.Raw:
        metadata = known.metadata
        try:
            return await self._client.get(
                BY_KIND[known.group_kind].resource, metadata.name, metadata.namespace, as_=msgspec.Raw
            )
        except NotFoundError as error:
            raise changed(known) from error

    async def revisions(self, workload: Workload) -> list[Revision]:
        """The objects that hold the workload's templates."""
        resource, found = BY_KIND[workload.group_kind].revisions, []
        async for data in self._items(resource, workload, workload.list_selector):
            raw = decode(data, _RAW)
            if (
                _controls(workload, raw)
                and not raw["metadata"].get("deletionTimestamp")
                # a controller whose selector matches everything may have adopted an entry of another workload's history
                and labels.HISTORY not in (raw["metadata"].get("labels") or {})
            ):
                found.append(revision_of(workload, raw))
        return found

    async def history(self, workload: Workload) -> list[Entry]:
        """The entries of the history with the label of the workload's name, without their templates: its own entries,
        entries without an owner, and entries of other workloads with this name."""
        entries = list[Entry]()
        async for data in self._items(history.RESOURCE, workload, history.label_selector(workload.metadata.name)):
            with contextlib.suppress(msgspec.DecodeError):  # somebody else's
                entries.append(history.read(data).without_template())
        return [each for each in entries if each.metadata.deletion_timestamp is None]

    async def applied(self, workload: Workload, target: SourceRef) -> Applied | None:
        """What clients stored about the template of a version when the workload had it; None if it is not known."""
        own = [each for each in await self.history(workload) if owns(workload, each)]
        found = next((each for each in own if each.fingerprint == target.fingerprint), None)
        return found.applied if found is not None else None

    async def entry(self, workload: Workload, name: str) -> Entry:
        """The ControllerRevision of this name as an entry of the history. ConflictError if it does not exist, or is not
        one."""
        try:
            return history.read(
                await self._client.get(history.RESOURCE, name, workload.metadata.namespace, as_=msgspec.Raw)
            )
        except (NotFoundError, msgspec.DecodeError) as error:
            raise changed(workload) from error

    async def recorded_actions(self, workload: Workload) -> tuple[Action, ...]:
        """The actions of the workload's version in the history; empty if the history does not have the version."""
        name = history.entry_name(workload.group_kind, workload.metadata.name, workload.version)
        try:
            entry = await self.entry(workload, name)
        except ConflictError:
            return ()
        return entry.record.actions if owns(workload, entry) else ()

    async def template(self, workload: Workload, source: SourceRef) -> Object:
        """The pod template in the object `source`. ConflictError if the object has another template now, or is gone."""
        adapter = BY_KIND[workload.group_kind]
        resource = history.RESOURCE if source.kind == history.RESOURCE.kind else adapter.revisions
        try:
            data = await self._client.get(resource, source.name, workload.metadata.namespace, as_=msgspec.Raw)
        except NotFoundError as error:
            raise changed(workload) from error
        if resource == history.RESOURCE and owns(
            workload, entry := project(data, history.read, history.RESOURCE.plural)
        ):
            if (entry.metadata.uid, entry.fingerprint) != (source.uid, source.fingerprint):
                raise changed(workload)
            return history.with_version(entry.template, source.version or source.fingerprint)
        raw = decode(data, _RAW)
        template = adapter.template(raw)
        if template is None or raw["metadata"].get("uid") != source.uid or not _controls(workload, raw):
            raise changed(workload)
        if fingerprint_of(template_of(template)) != source.fingerprint:
            raise changed(workload)
        return template

    async def _items(self, resource: Resource, workload: Workload, selector: str) -> AsyncIterator[msgspec.Raw]:
        """The objects with pod templates, a few at a time: a workload may have hundreds of them, of a megabyte each."""
        slices = time_slices()
        pages = self._client.pages(resource, workload.metadata.namespace, label_selector=selector, limit=_FEW)
        async with contextlib.aclosing(pages):
            async for page in pages:
                for item in page.items:
                    yield item
                    await slices.yield_if_over()


def owns(workload: Workload, entry: Entry) -> bool:
    """Whether an entry of the history belongs to exactly this workload."""
    return entry.is_of(workload.group_kind, workload.metadata.name, workload.metadata.uid)


def revision_of(workload: Workload, raw: Object) -> Revision:
    """The revision in an object that holds a template of the workload, as the API server sends the object."""
    adapter, metadata = BY_KIND[workload.group_kind], raw["metadata"]
    template = adapter.template(raw)
    own = ((template or {}).get("metadata") or {}).get("labels") or {}
    return Revision(
        SourceRef(
            adapter.revisions.kind,
            metadata["name"],
            metadata["uid"],
            str(own.get(labels.VERSION) or ""),
            fingerprint_of(template_of(template)) if template is not None else "",
        ),
        int(unix(metadata.get("creationTimestamp"))),
        adapter.number(raw),
    )


def changed(workload: Workload) -> ConflictError:
    """The error of a read that finds another state of the workload than the caller knows."""
    metadata = workload.metadata
    return ConflictError(
        f"{workload.kind} {metadata.namespace}/{metadata.name} has changed since it was read", code=409
    )


def _controls(workload: Workload, raw: Object) -> bool:
    """Whether the workload is the controller of this object, by kind and uid."""
    adapter = BY_KIND[workload.group_kind]
    for owner in raw["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return (owner.get("uid"), owner.get("kind"), owner.get("apiVersion")) == (
                workload.metadata.uid,
                workload.kind,
                adapter.resource.api_version,
            )
    return False
