"""Looks for ungated releases with live reads, and acts on them. `ungated.py` decides whether a release is ungated."""

import math
from collections.abc import Callable, Sequence

import msgspec

from altershield.api import labels, names
from altershield.api.announcements import announcement
from altershield.api.change_workload import SourceRef
from altershield.api.condition_types import ConditionType
from altershield.api.json_patch import Operation, at_version, label_path
from altershield.api.meta import Condition, find_condition
from altershield.releases import rolled_back
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey
from reconciler.cluster.release import Release
from reconciler.cluster.writer import Writer
from reconciler.releases.findings.ungated import (
    Refresh,
    Restore,
    UngatedRelease,
    classify,
    current_revision,
    may_be_ungated,
)
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.writes.creation import ReleaseCreator, processed

_VERSION = label_path(labels.VERSION)


class UngatedCheck:
    """`clock` returns Unix seconds by the API server's clock."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        live: LiveReader,
        creator: ReleaseCreator,
        metrics: ReleaseMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live
        self._creator = creator
        self._metrics = metrics
        self._clock = clock
        self._denied_refreshed: set[WorkloadKey] = set()
        """Workloads whose fingerprints of rolled-back versions were refreshed since this process started."""
        self._checked: dict[WorkloadKey, tuple[str, ...]] = {}
        """By workload: the key of the last check that found the current release not to be ungated (see
        `_check_key`)."""

    def discard(self, key: WorkloadKey) -> None:
        """Forget a workload that is deleted or not governed."""
        self._checked.pop(key, None)
        self._denied_refreshed.discard(key)

    async def check(
        self, key: WorkloadKey, workload: Workload, own: Sequence[Release], release: Release | None
    ) -> tuple[bool, Release | None]:
        """Find out with live reads whether the current release is ungated, and act on it.

        Returns whether this reconcile is finished, and the ChangeWorkload of the current version.
        """
        if not may_be_ungated(workload, release) or self._checked.get(key) == _check_key(workload, release):
            return False, release
        if not workload.up_to_date:
            # If the source is known, its pods prove nothing about another template, whose object may not exist yet.
            replaced = release is not None and bool(release.status.source.uid)
            return replaced or not names.is_version(workload.version), release
        live = await self._live.workload(workload)
        if live.workload.generation != workload.generation or live.workload.fingerprint != workload.fingerprint:
            return True, release  # the watch queues the workload when it brings the change
        revisions = await self._live.revisions(live.workload)
        governed_since = self._caches.governed_since(workload.metadata.namespace)
        found = classify(live.workload, own, revisions, released_at=live.released_at, governed_since=governed_since)
        match found:
            case None:
                if current_revision(live.workload, revisions) is not None and governed_since < math.inf:
                    self._checked[key] = _check_key(workload, release)
                return False, release
            case Refresh(source) if release is not None:
                self._denied_refreshed.discard(key)
                return False, await self._refresh(release, source, [each.source for each in revisions])
            case Refresh():
                return False, release
            case Restore(version):
                await self._set_version(live.workload, version)
                return True, release
            case UngatedRelease():
                await self._verify_ungated(live.workload, own, found)
                return True, release

    async def refresh_denied(self, key: WorkloadKey, workload: Workload, own: Sequence[Release]) -> None:
        """Refresh the fingerprints of the templates that were rolled back.

        The gatekeeper denies a rolled-back version by the fingerprint of its template. An API server with other
        defaults returns the same template with another fingerprint. Nothing announces such a change, so the
        fingerprints are compared whenever a reconciler becomes the leader, and when the current version shows a change.
        """
        if key in self._denied_refreshed:
            return
        denied = [each for each in own if rolled_back(each) and each.status.source.uid]
        current = {each.source.uid: each.source for each in await self._live.revisions(workload)} if denied else {}
        for release in denied:
            source = release.status.source
            found = current.get(source.uid)
            if found is not None and found.fingerprint != source.fingerprint:
                fresh = msgspec.structs.replace(source, fingerprint=found.fingerprint)
                status = msgspec.structs.replace(release.status, source=fresh)
                await self._writer.save_release(release, status, lists=False)
        self._denied_refreshed.add(key)

    async def _refresh(self, release: Release, source: SourceRef, sources: Sequence[SourceRef]) -> Release:
        """Store the fingerprints that the API server's new defaults give to the templates of this release and of the
        previous one."""
        status = msgspec.structs.replace(release.status, source=source)
        before = release.status.previous
        found = next((each for each in sources if each.uid == before.uid), None)
        if release.status.source.uid and found is not None:
            status = msgspec.structs.replace(
                status, previous=msgspec.structs.replace(before, fingerprint=found.fingerprint)
            )
        return await self._writer.save_release(release, status, lists=False)

    async def _verify_ungated(self, workload: Workload, own: Sequence[Release], ungated: UngatedRelease) -> None:
        """Create the ChangeWorkload of an ungated release, and announce the release.

        The message of the condition names the object and its revision. A ChangeWorkload with the same message is
        already about this release, which is then not announced again. The workload's labels are written last.
        """
        release = await self._creator.existing(workload, ungated.version)
        known = find_condition(release.status.conditions, ConditionType.UNGATED) if release is not None else None
        announced = known is not None and known.message == ungated.message
        if release is None:
            release = await self._creator.create(workload, ungated.version)
        begun = release.spec.workload_generation == workload.generation
        if not announced or not begun:
            condition = Condition(
                ConditionType.UNGATED,
                "True",
                ungated.reason,
                ungated.message,
                last_transition_time=rfc3339(self._clock()),
                observed_generation=release.metadata.generation,
            )
            others = [each for each in own if each.metadata.uid != release.metadata.uid]
            event = announcement("UngatedRelease", ungated.message, self._clock())
            events = () if announced else (event,)
            await self._creator.start_anew(workload, release, others, condition, announcements=events)
            if not announced:
                self._metrics.ungated(ungated.reason)
        await self._set_version(workload, ungated.version)

    async def _set_version(self, workload: Workload, version: str) -> None:
        """Write the version label and the labels that let verification begin. The pod template is not changed."""
        operations: list[Operation] = [
            # a release that was made meanwhile has another version
            at_version(workload.metadata.resource_version)
        ]
        if not workload.labelled:
            operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
        label: Operation = {"op": "add", "path": _VERSION, "value": version}
        await self._writer.patch(
            self._caches.workloads[workload.group_kind], workload, [*operations, label, *processed()]
        )


def _check_key(workload: Workload, release: Release | None) -> tuple[str, ...]:
    """The values that a check depends on: if one of them changes, the release is checked again."""
    source = release.status.source.uid if release is not None else ""
    return workload.metadata.uid, str(workload.generation), workload.version, workload.fingerprint, source
