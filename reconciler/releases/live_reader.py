"""Reads from the API server, for decisions that must not rely on caches that are behind."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from altershield.api import labels
from altershield.api.kinds import SourceRef
from altershield.api.managed_fields import ManagedMeta
from altershield.api.meta import unix
from altershield.api.policy import OnFailure
from altershield.api.resources import CHANGE_PODS, EVENTS, PODS
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, NotFoundError
from altershield.releases import history
from altershield.releases.history import Entry
from altershield.releases.release import version as version_of
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads import pods as pod_projections
from altershield.workloads.adapter import Object, template_of
from altershield.workloads.pods import Pod
from altershield.workloads.workload import WireSelector, Workload
from altershield.workloads.workload import version_of as fingerprint_of
from reconciler.machinery.caches import Caches
from reconciler.releases import pausing
from reconciler.releases.ending import overdue_pods
from reconciler.releases.health import events_fault
from reconciler.releases.pod_groups import PodGroups
from reconciler.releases.projection import Release
from reconciler.releases.snapshot import Snapshot, Target
from reconciler.releases.ungated import Revision

_MAX_EVENTS_READ = 5  # pods; others with the same template wait for the same reason


_RAW = dict[str, Any]


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


class _Event(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


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
        found: Object = msgspec.json.decode(self.raw, type=_WithTemplate).spec.template
        return found

    def selects(self, own: Mapping[str, str]) -> bool:
        """Whether its selector matches these labels."""
        return msgspec.json.decode(self.raw, type=_WithSelector).spec.selector.matches(own)


class LiveReader:
    """All methods raise the errors of the client."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches

    async def workload(self, known: Workload) -> LiveWorkload:
        """The workload with the uid of `known`. ConflictError if it does not exist any more."""
        adapter, metadata = BY_KIND[known.kind], known.metadata
        raw = await self._raw(known)
        found = adapter.read(raw)
        if found.metadata.uid != metadata.uid or found.metadata.deleting:
            raise _changed(known)
        managed = msgspec.json.decode(raw, type=_Managed)
        return LiveWorkload(found, managed.metadata.released_at, managed.metadata.annotations, raw)

    async def raw(self, known: Workload) -> Object:
        """The workload as the API server sends it. ConflictError if it does not exist any more, or if another version
        was released."""
        raw: Object = msgspec.json.decode(await self._raw(known))
        found = BY_KIND[known.kind].read(msgspec.json.encode(raw))
        if found.metadata.uid != known.metadata.uid or found.metadata.deleting or found.version != known.version:
            raise _changed(known)
        return raw

    async def own_pause(self, known: Workload) -> bool:
        """Whether the rollout is paused as AlterShield paused it, and nobody else has changed the fields since."""
        if not known.held:
            return False
        return pausing.is_own(await self.raw(known), BY_KIND[known.kind].pause(known))

    async def _raw(self, known: Workload) -> msgspec.Raw:
        metadata = known.metadata
        try:
            return await self._client.get(
                BY_KIND[known.kind].resource, metadata.name, metadata.namespace, as_=msgspec.Raw
            )
        except NotFoundError as error:
            raise _changed(known) from error

    async def revisions(self, workload: Workload) -> list[Revision]:
        """The objects that hold the workload's templates."""
        return [_revision(workload, raw) for raw in await self._raw_revisions(workload)]

    async def history(self, workload: Workload) -> list[Entry]:
        """The entries of the history with the label of the workload's name: its own entries, entries without an owner,
        and entries of other workloads with this name."""
        listed = await self._client.list(
            history.RESOURCE,
            workload.metadata.namespace,
            as_=msgspec.Raw,
            label_selector=history.label_selector(workload.metadata.name),
        )
        entries = [history.read(raw) for raw in listed.items]
        return [each for each in entries if each.metadata.deletion_timestamp is None]

    async def entry(self, workload: Workload, name: str) -> Entry:
        """The ControllerRevision of this name as an entry of the history. ConflictError if it does not exist."""
        try:
            return history.read(
                await self._client.get(history.RESOURCE, name, workload.metadata.namespace, as_=msgspec.Raw)
            )
        except NotFoundError as error:
            raise _changed(workload) from error

    async def template(self, workload: Workload, source: SourceRef) -> Object:
        """The pod template in the object `source`. ConflictError if the object has another template now, or is gone."""
        adapter = BY_KIND[workload.kind]
        resource = history.RESOURCE if source.kind == history.RESOURCE.kind else adapter.revisions
        try:
            data = await self._client.get(resource, source.name, workload.metadata.namespace, as_=msgspec.Raw)
        except NotFoundError as error:
            raise _changed(workload) from error
        if resource == history.RESOURCE and owns(workload, entry := history.read(data)):
            if (entry.metadata.uid, entry.fingerprint) != (source.uid, source.fingerprint):
                raise _changed(workload)
            return history.with_version(entry.template, source.version or source.fingerprint)
        raw: Object = msgspec.json.decode(data)
        template = adapter.template(raw)
        if template is None or raw["metadata"].get("uid") != source.uid or not _controls(workload, raw):
            raise _changed(workload)
        if fingerprint_of(template_of(template)) != source.fingerprint:
            raise _changed(workload)
        return template

    async def refresh_and_find_targets(
        self, snapshot: Snapshot, own_releases: Sequence[Release], now: float
    ) -> list[Target]:
        """Bring the groups, if the snapshot has groups, up to date with the API server. Return the possible targets of
        a rollback, the newest first.

        ConflictError if another version was released meanwhile.
        """
        workload = snapshot.workload
        present = (await self.workload(workload)).workload
        if present.version != workload.version or present.fingerprint != workload.fingerprint:
            raise _changed(workload)
        revisions = await self.revisions(workload)
        listed = await self._client.list(
            PODS, workload.metadata.namespace, as_=msgspec.Raw, label_selector=workload.selector
        )
        pods = [pod_projections.read(raw) for raw in listed.items]
        uids = {each.source.uid for each in revisions}
        adapter = BY_KIND[workload.kind]
        owners = uids if adapter.intermediate is not None else {workload.metadata.uid}
        own = [pod for pod in pods if pod.owner.uid in owners]
        for pod in own:
            self._caches.pods.observe(pod)
        if snapshot.groups is not None:
            if snapshot.settings.on_failure is not OnFailure.SUSPEND:
                await self._read_verdicts(snapshot)
            self._refresh(snapshot.groups, own, workload, now)
            await self._read_events(snapshot, snapshot.groups, now)
        kept = _kept_targets(workload, await self.history(workload), revisions)
        return self._targets(workload, snapshot.source, [*revisions, *kept], own, own_releases)

    async def _read_verdicts(self, snapshot: Snapshot) -> None:
        """Read the ChangePods of the release, because a person may have corrected the verdict that causes a rollback.
        The event handlers of the cache bring the groups up to date."""
        release = snapshot.release
        selector = f"{labels.VERSION}={version_of(release)}"
        listed = await self._client.list(
            CHANGE_PODS, release.metadata.namespace, as_=msgspec.Raw, label_selector=selector
        )
        for raw in listed.items:
            self._caches.batches.observe(self._caches.batches.read(raw))

    def _refresh(self, groups: PodGroups, own: Sequence[Pod], workload: Workload, now: float) -> None:
        """Bring the groups up to date with the pods that were listed."""
        for pod in own:
            groups.update_pod(self._newest(pod), now)
        there = {pod.metadata.uid for pod in own}
        for uid in [uid for uid in groups.uids() if uid not in there]:
            groups.remove_pod(uid)
        groups.refresh(workload, now)

    def _newest(self, pod: Pod) -> Pod:
        """The cached pod if it exists, else the listed pod. The cached pod can be newer."""
        return self._caches.pods.get(pod.metadata.namespace, pod.metadata.name) or pod

    async def _read_events(self, snapshot: Snapshot, groups: PodGroups, now: float) -> None:
        """Read the Events of overdue pods whose containers could not be started, because their status does not have the
        reason."""
        creating = [tracked for tracked in overdue_pods(snapshot) if tracked.pod.creating]
        found = None
        for tracked in creating[:_MAX_EVENTS_READ]:
            metadata = tracked.pod.metadata
            events = await self._client.list(
                EVENTS, metadata.namespace, as_=_Event, field_selector=f"involvedObject.uid={metadata.uid}"
            )
            found = events_fault((event.reason, event.message, unix(event.last_timestamp)) for event in events.items)
            if found is not None:
                break
        for tracked in creating:
            groups.set_events_fault(tracked.pod.metadata.uid, found, now)
        groups.refresh(snapshot.workload, now)

    async def _raw_revisions(self, workload: Workload) -> list[dict[str, Any]]:
        listed = await self._client.list(
            BY_KIND[workload.kind].revisions, workload.metadata.namespace, as_=_RAW, label_selector=workload.selector
        )
        return [
            raw
            for raw in listed.items
            if _controls(workload, raw)
            and not raw["metadata"].get("deletionTimestamp")
            # a controller whose selector matches everything may have adopted an entry of another workload's history
            and labels.HISTORY not in (raw["metadata"].get("labels") or {})
        ]

    def _targets(
        self,
        workload: Workload,
        source: SourceRef,
        revisions: Sequence[Revision],
        pods: Sequence[Pod],
        own_releases: Sequence[Release],
    ) -> list[Target]:
        """The possible targets of a rollback, the newest first."""
        adapter = BY_KIND[workload.kind]
        found = []
        for revision in sorted(revisions, key=lambda each: (each.number, each.created), reverse=True):
            own = revision.source
            if own.uid == source.uid:
                continue
            own_pods = [pod for pod in pods if pod.exists and is_pod_of_revision(adapter, pod, own.name, own.uid)]
            release = _release_of(revision, own_releases)
            version = version_of(release) if release is not None else ""
            found.append(
                Target(
                    msgspec.structs.replace(
                        own, version=version or (own.version if own.version == own.fingerprint else "")
                    ),
                    serving=sum(pod.ready and self._caches.node_ready(pod.node) for pod in own_pods),
                    pods=len(own_pods),
                    release=release,
                )
            )
        return found


def owns(workload: Workload, entry: Entry) -> bool:
    """Whether an entry of the history belongs to exactly this workload."""
    return entry.is_of(workload.kind, workload.metadata.name, workload.metadata.uid)


def _kept_targets(workload: Workload, entries: Sequence[Entry], revisions: Sequence[Revision]) -> list[Revision]:
    """The versions that only the history has. They have no number, so they come after all other targets."""
    there = {workload.fingerprint, *(each.source.fingerprint for each in revisions)}
    return [
        Revision(
            SourceRef(history.RESOURCE.kind, each.metadata.name, each.metadata.uid, each.version, each.fingerprint),
            int(unix(each.metadata.creation_timestamp)),
            0,
        )
        for each in entries
        if owns(workload, each) and each.fingerprint not in there and each.version != workload.version
    ]


def _release_of(revision: Revision, own_releases: Sequence[Release]) -> Release | None:
    """The ChangeWorkload of the version that a revision holds, or None."""
    own = revision.source
    for release in own_releases:
        if release.status.source.uid == own.uid or own.fingerprint in (
            version_of(release),
            release.status.source.fingerprint,
        ):
            return release
    return None


def _revision(workload: Workload, raw: Object) -> Revision:
    adapter, metadata = BY_KIND[workload.kind], raw["metadata"]
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


def _controls(workload: Workload, raw: Object) -> bool:
    """Whether the workload is the controller of this object, by kind and uid."""
    adapter = BY_KIND[workload.kind]
    for owner in raw["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return (owner.get("uid"), owner.get("kind"), owner.get("apiVersion")) == (
                workload.metadata.uid,
                workload.kind,
                adapter.resource.api_version,
            )
    return False


def _changed(workload: Workload) -> ConflictError:
    metadata = workload.metadata
    return ConflictError(
        f"{workload.kind} {metadata.namespace}/{metadata.name} has changed since it was read", code=409
    )
