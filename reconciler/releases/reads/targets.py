"""Reads the pods of a workload, and the possible targets of a rollback, from the API server. The pod groups get the
same state."""

import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import msgspec

from altershield.api import labels
from altershield.api.change_workload import SourceRef
from altershield.api.policy import OnFailure
from altershield.api.resources import CHANGE_PODS
from altershield.releases import history
from altershield.releases.history import Entry
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads import pods as pod_projections
from altershield.workloads.adapter import Object
from altershield.workloads.pod_events import PodEvent, telling
from altershield.workloads.pods import Pod, clip
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.access.time_slices import time_slices
from kube_base.meta import version_number
from kube_base.resources import EVENTS, PODS
from kube_base.times import unix
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.releases.findings.ending import automatic_target, cause_unknown, overdue_pods, unknown_again_at
from reconciler.releases.findings.ungated import Revision
from reconciler.releases.pods.blame import changed_parts
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import events_fault
from reconciler.releases.pods.listed import ListedPods, existing
from reconciler.releases.pods.words import own_words
from reconciler.releases.reads.live import LiveReader, changed, owns
from reconciler.releases.terms.snapshot import Snapshot, Target

logger = logging.getLogger(__name__)

_PODS_AT_A_TIME = 50
_EVENTS_AT_A_TIME = 50  # users can write Events with messages of a megabyte
_MAX_EVENTS_READ = 5  # pods; others with the same template wait for the same reason


class TargetReader:
    """All methods raise the errors of the client."""

    def __init__(self, client: Client, caches: Caches, live: LiveReader) -> None:
        self._client = client
        self._caches = caches
        self._live = live

    async def refresh(self, snapshot: Snapshot, now: float) -> None:
        """Bring the groups up to date with the pods that the API server has."""
        workload = snapshot.workload
        if snapshot.groups is not None:
            listed = await self._list_pods(workload, lambda pod: self._caches.owns(workload, pod))
            await self._update(snapshot.groups, listed, workload, now)

    async def refresh_and_find_targets(
        self, snapshot: Snapshot, own_releases: Sequence[Release], now: float
    ) -> list[Target]:
        """Bring the groups, if the snapshot has groups, up to date with the API server. Return the possible targets of
        a rollback, the newest first.

        ConflictError if another version was released meanwhile.
        """
        workload = snapshot.workload
        live = await self._live.workload(workload)
        present = live.workload
        if present.version != workload.version or present.fingerprint != workload.fingerprint:
            raise changed(workload)
        revisions = await self._live.revisions(workload)
        uids = {each.source.uid for each in revisions}
        adapter = BY_KIND[workload.group_kind]
        owners = uids if adapter.intermediate is not None else {workload.metadata.uid}
        listed = await self._list_pods(workload, lambda pod: pod.owner.uid in owners)
        if snapshot.groups is not None:
            if snapshot.settings.on_failure is not OnFailure.SUSPEND:
                await self._read_verdicts(snapshot)
            await self._update(snapshot.groups, listed, workload, now)
            await self._read_events(snapshot, snapshot.groups, now)
        entries = [each for each in await self._live.history(workload) if owns(workload, each)]
        kept = _kept_targets(workload, entries, revisions)
        numbers = {each.fingerprint: tuple(record.number for record in each.releases) for each in entries}
        pods = listed.pods.values()
        found = self._targets(workload, snapshot.source, [*revisions, *kept], pods, own_releases)
        targets = [replace(each, numbers=numbers.get(each.source.fingerprint, ())) for each in found]
        if snapshot.groups is not None and cause_unknown(snapshot, now):
            await self._find_cause(snapshot, snapshot.groups, live.template, targets, now)
        return targets

    async def _find_cause(
        self, snapshot: Snapshot, groups: PodGroups, template: Object, targets: Sequence[Target], now: float
    ) -> None:
        """Find out what the release changed against the version to go back to, and why pods are not created.
        `template`: its pod template. If there is no such version, nothing can be undone, and no cause is looked for."""
        workload = snapshot.workload
        if groups.cause.changed is None or now >= groups.cause.changed_until:
            target = automatic_target(snapshot, targets)
            if isinstance(target, str):
                groups.set_changed(frozenset(), unknown_again_at(snapshot, now))
            else:
                groups.set_changed(changed_parts(await self._live.template(workload, target.source), template))
        if groups.cause.changed and not workload.refused and BY_KIND[workload.group_kind].intermediate is None:
            groups.set_refusal(await self._refusal(snapshot, groups), now)
        groups.refresh(workload, now)

    async def _refusal(self, snapshot: Snapshot, groups: PodGroups) -> str:
        """The API server's words in the newest Event that says that a pod of the release cannot be created; empty if
        there is none, or if a pod was created since."""
        metadata = snapshot.workload.metadata
        events = await self._client.list(
            EVENTS,
            metadata.namespace,
            as_=PodEvent,
            field_selector=f"involvedObject.uid={metadata.uid},reason=FailedCreate",
            limit=_EVENTS_AT_A_TIME,
        )
        newest = max(events.items, key=lambda event: event.at, default=PodEvent())
        created = max((pod.metadata.created for pod in groups.pods_by_uid().values()), default=0)
        since = max(created, snapshot.release.spec.create_time_unix)
        return clip(newest.message) if newest.at >= since else ""

    async def _list_pods(self, workload: Workload, is_own: Callable[[Pod], bool]) -> ListedPods:
        """The pods of the workload. Their pages are small, because each pod has the whole template."""
        pages = self._client.pages(
            PODS, workload.metadata.namespace, label_selector=workload.list_selector, limit=_PODS_AT_A_TIME
        )
        found, version, slices = list[Pod](), 0, time_slices()
        async with contextlib.aclosing(pages):
            async for page in pages:
                version = version_number(page.metadata.resource_version)
                for item in page.items:
                    found.append(pod_projections.read(item))
                    await slices.yield_if_over()
        own = dict[str, Pod]()
        for pod in found:
            if is_own(pod):
                own[pod.metadata.uid] = pod
            await slices.yield_if_over()
        return ListedPods(own, version)

    async def _read_verdicts(self, snapshot: Snapshot) -> None:
        """Read the ChangePods of the release, because a person may have corrected the verdict that causes a rollback.
        The event handlers of the cache bring the groups up to date."""
        release = snapshot.release
        selector = f"{labels.VERSION}={version_of(release)}"
        listed = await self._client.list(
            CHANGE_PODS, release.metadata.namespace, as_=msgspec.Raw, label_selector=selector
        )
        slices = time_slices()
        for raw in listed.items:
            self._caches.batches.observe(self._caches.batches.read(raw))
            await slices.yield_if_over()

    async def _update(self, groups: PodGroups, listed: ListedPods, workload: Workload, now: float) -> None:
        """Bring the groups up to date with the pods that were listed."""
        slices = time_slices()
        for pod in listed.pods.values():
            self._caches.pods.observe(pod)
            await slices.yield_if_over()
        known, pods = groups.pods_by_uid(), self._caches.pods
        there = existing(listed, lambda pod: pods.get(pod.metadata.namespace, pod.metadata.name), known)
        for uid in known.keys() - there.keys():
            groups.remove_pod(uid)
        for uid, pod in there.items():
            if known.get(uid) is not pod:  # most are unchanged, and there may be thousands
                groups.update_pod(pod, now)
        groups.refresh(workload, now)

    async def _read_events(self, snapshot: Snapshot, groups: PodGroups, now: float) -> None:
        """Read the Events of overdue pods whose status does not have the reason."""
        overdue = sorted(overdue_pods(snapshot), key=lambda each: (each.down_since, each.pod.metadata.name))
        creating = [tracked for tracked in overdue if tracked.pod.creating]
        others = [each for each in overdue if not each.pod.creating and own_words(each, node_lost=False) is None]
        found = None
        for tracked in [*creating, *others][:_MAX_EVENTS_READ]:
            events = await self._events(tracked.pod)
            groups.set_event(tracked.pod.metadata.uid, telling(events), now)
            if tracked.pod.creating:
                found = events_fault((event.reason, event.message, event.at) for event in events)
            if found is not None:
                break
        for tracked in creating:
            groups.set_events_fault(tracked.pod.metadata.uid, found, now)
        groups.refresh(snapshot.workload, now)

    async def read_words(self, snapshot: Snapshot, groups: PodGroups, now: float) -> None:
        """Read the Events of a few pods that are not up, because nothing else says why. An error counts as no Event:
        the release goes on without the words."""
        for tracked in groups.not_up.ask(now):
            try:
                found = telling(await self._events(tracked.pod))
            except KubernetesError as error:
                logger.info("cannot read the Events of pod %s: %s", tracked.pod.metadata.name, error)
                found = None
            groups.set_event(tracked.pod.metadata.uid, found, now)
        groups.refresh(snapshot.workload, now)

    async def _events(self, pod: Pod) -> list[PodEvent]:
        metadata = pod.metadata
        selector = f"involvedObject.uid={metadata.uid}"
        listed = await self._client.list(
            EVENTS, metadata.namespace, as_=PodEvent, field_selector=selector, limit=_EVENTS_AT_A_TIME
        )
        return listed.items

    def _targets(
        self,
        workload: Workload,
        source: SourceRef,
        revisions: Sequence[Revision],
        pods: Collection[Pod],
        own_releases: Sequence[Release],
    ) -> list[Target]:
        """The possible targets of a rollback, the newest first."""
        adapter = BY_KIND[workload.group_kind]
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
        if each.fingerprint not in there and each.version != workload.version
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
