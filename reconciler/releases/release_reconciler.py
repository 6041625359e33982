"""Controller: everything about a workload's releases. Its keys are workloads."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from altershield.api import labels, names
from altershield.api.json_patch import Operation, label_path
from altershield.api.kinds import ConditionType, SourceRef, WorkloadState
from altershield.api.meta import Condition, find_condition, rfc3339
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from altershield.releases import is_current, is_of_template, rolled_back, state
from altershield.releases.release import version as version_of
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads.workload import Workload
from reconciler.machinery.caches import Caches, WorkloadKey, belongs
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.writer import Writer
from reconciler.releases import rollback
from reconciler.releases.creation import ReleaseCreator, previous, processed
from reconciler.releases.decide import decide
from reconciler.releases.effects import Decision, PutBack
from reconciler.releases.executor import Executor, Refused
from reconciler.releases.health import Timing
from reconciler.releases.live_reader import LiveReader
from reconciler.releases.pod_groups_cache import PodGroupsCache
from reconciler.releases.projection import Release
from reconciler.releases.snapshot import Snapshot
from reconciler.releases.ungated import Refresh, Restore, UngatedRelease, classify, may_be_ungated, present

_VERSION = label_path(labels.VERSION)
_REFUSED_FIRST = 5.0  # seconds until a refused write is tried again, doubling up to
_REFUSED_LAST = 300.0
_ABOUT_TO_ACT = 10.0  # seconds in which a workload's controller should have made something of its template


class ReleaseReconciler:
    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        timing: Timing,
        batch_wait: int,
    ) -> None:
        self.groups_cache = PodGroupsCache(caches, timing, clock)
        self._caches = caches
        self._clock = clock
        self._timing = timing
        self._metrics = metrics
        self._live = LiveReader(client, caches)
        self._creator = ReleaseCreator(caches, writer, clock, batch_wait)
        self._executor = Executor(caches, writer, self._live, recorder, metrics, clock)
        self._writer = writer
        self._refusals: dict[WorkloadKey, int] = {}
        self._denied_refreshed: set[WorkloadKey] = set()
        """Workloads whose rolled-back versions were looked at since this process began."""
        self._checked: dict[WorkloadKey, tuple[str, ...]] = {}
        """Doubtful releases that were looked at and are not ungated, by what was looked at."""

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """In how many seconds to look again, or None."""
        workload = self._caches.workload(key)
        if workload is None or workload.metadata.deleting or not self._caches.governed(key.namespace):
            self.groups_cache.discard(key)
            self._refusals.pop(key, None)
            self._checked.pop(key, None)
            self._denied_refreshed.discard(key)
            return None
        all_releases = [each for each in self._caches.releases_of(workload) if each.metadata.deletion_timestamp is None]
        own = [each for each in all_releases if belongs(each, workload)]
        for other in own:
            if (
                state(other) is WorkloadState.ROLLBACK
                and version_of(other) != workload.version
                and names.is_version(workload.version)
                and not is_of_template(other, workload.fingerprint)
            ):
                return await self._end_rollback(key, workload, other)
        await self._refresh_denied(key, workload, own)
        release = next((each for each in own if version_of(each) == workload.version), None)
        if may_be_ungated(workload, release) and self._checked.get(key) != _check_key(workload, release):
            handled, release = await self._check_ungated(key, workload, own, release)
            if handled:
                return None
        if not names.is_version(workload.version):
            return None
        # what failed is history, but for the release that is the present one
        if release is None or not is_current(release, workload) or state(release) is WorkloadState.FAILED:
            await self._begin(workload, all_releases)
            return None
        return await self._verify(key, workload, release, [each for each in all_releases if each is not release])

    async def _end_rollback(self, key: WorkloadKey, workload: Workload, release: Release) -> float | None:
        """A version that is being rolled back is not the present one any more."""
        source, adapter = release.status.source, BY_KIND[workload.kind]
        pods = [
            pod for pod in self._caches.pods_of(workload) if is_pod_of_revision(adapter, pod, source.name, source.uid)
        ]
        decision = rollback.close(release, workload, rollback.stuck_pods(workload, pods), self._clock())
        await self._executor.carry_out(release, workload, decision)
        self._refusals.pop(key, None)
        return 0.0 if decision.requeue_after is None else decision.requeue_after

    # what begins

    async def _begin(self, workload: Workload, all_releases: Sequence[Release]) -> None:
        """The present version has no record, or one of an earlier release. The label comes last, which lets
        verification begin; the write leads here again."""
        release = await self._creator.existing(workload, workload.version)
        if release is None:
            release = await self._creator.create(workload, workload.version)
        elif self._begins_anew(workload, release):
            others = [each for each in all_releases if each.metadata.uid != release.metadata.uid]
            release = await self._creator.start_anew(workload, release, others)
        if not workload.processed:
            await self._executor.label(workload, processed(workload))

    @staticmethod
    def _begins_anew(workload: Workload, release: Release) -> bool:
        """Whether what the record says is about an earlier release of its version. A suspension that a workload takes
        over from a namesake is not."""
        if state(release) is WorkloadState.FAILED:
            return True
        if release.spec.workload_generation == 0:
            return state(release) is not WorkloadState.SUSPEND
        return not workload.processed and release.spec.workload_generation != workload.generation

    async def _check_ungated(
        self, key: WorkloadKey, workload: Workload, own: Sequence[Release], release: Release | None
    ) -> tuple[bool, Release | None]:
        """Look closer at a release that may be ungated. Whether that was all for now, and the record
        of the present version."""
        if not workload.up_to_date:
            return not names.is_version(workload.version), release
        live = await self._live.workload(workload)
        if live.workload.generation != workload.generation or live.workload.fingerprint != workload.fingerprint:
            return True, release  # the watch brings it
        revisions = await self._live.revisions(live.workload)
        governed_since = self._caches.governed_since(workload.metadata.namespace)
        found = classify(live.workload, own, revisions, released_at=live.released_at, governed_since=governed_since)
        match found:
            case None:
                if present(live.workload, revisions) is not None and governed_since < math.inf:
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

    async def _refresh_denied(self, key: WorkloadKey, workload: Workload, own: Sequence[Release]) -> None:
        """What was rolled back is denied by the fingerprint of its template, which an API server with other defaults
        shows with another one. That it has other defaults, nothing tells: so it is looked at whenever a reconciler
        begins to lead, and when the present version shows it."""
        if key in self._denied_refreshed:
            return
        denied = [each for each in own if rolled_back(each) and each.status.source.uid]
        shown = {each.source.uid: each.source for each in await self._live.revisions(workload)} if denied else {}
        for release in denied:
            source = release.status.source
            now = shown.get(source.uid)
            if now is not None and now.fingerprint != source.fingerprint:
                fresh = msgspec.structs.replace(source, fingerprint=now.fingerprint)
                status = msgspec.structs.replace(release.status, source=fresh)
                await self._writer.save_release(release, status, lists=False)
        self._denied_refreshed.add(key)

    async def _refresh(self, release: Release, source: SourceRef, sources: Sequence[SourceRef]) -> Release:
        """The API server shows templates otherwise than before: what is remembered of them follows."""
        status = msgspec.structs.replace(release.status, source=source)
        before = release.status.previous
        shown = next((each for each in sources if each.uid == before.uid), None)
        if release.status.source.uid and shown is not None:
            status = msgspec.structs.replace(
                status, previous=msgspec.structs.replace(before, fingerprint=shown.fingerprint)
            )
        return await self._writer.save_release(release, status, lists=False)

    async def _verify_ungated(self, workload: Workload, own: Sequence[Release], ungated: UngatedRelease) -> None:
        """Record it as a release, and tell. Its message names the object and its revision, so what has the same one
        was recorded before. The workload's label comes last."""
        release = await self._creator.existing(workload, ungated.version)
        known = find_condition(release.status.conditions, ConditionType.UNGATED) if release is not None else None
        recorded = known is not None and known.message == ungated.message
        if release is None:
            release = await self._creator.create(workload, ungated.version)
        begun = release.spec.workload_generation == workload.generation
        if not recorded or not begun:
            condition = Condition(
                ConditionType.UNGATED,
                "True",
                ungated.reason,
                ungated.message,
                last_transition_time=rfc3339(self._clock()),
                observed_generation=release.metadata.generation,
            )
            others = [each for each in own if each.metadata.uid != release.metadata.uid]
            await self._creator.start_anew(workload, release, others, condition)
            if not recorded:
                self._executor.announce(workload, "UngatedRelease", ungated.message)
                self._metrics.ungated(ungated.reason)
        await self._set_version(workload, ungated.version)

    async def _set_version(self, workload: Workload, version: str) -> None:
        """Give the workload this version, and nothing else: its template stays as it is."""
        operations: list[Operation] = [
            # a release that came meanwhile has another version
            {"op": "test", "path": "/metadata/resourceVersion", "value": workload.metadata.resource_version}
        ]
        if not workload.labelled:
            operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
        label: Operation = {"op": "add", "path": _VERSION, "value": version}
        await self._writer.patch(
            self._caches.workloads[workload.kind], workload, [*operations, label, *processed(workload)]
        )

    # what goes on

    async def _verify(
        self, key: WorkloadKey, workload: Workload, release: Release, others: Sequence[Release]
    ) -> float | None:
        source = await self._source(workload, release)
        grace = min(_ABOUT_TO_ACT, self._timing.start_timeout)
        left = release.spec.create_time_unix + grace - self._clock()
        if not source.uid and state(release) is WorkloadState.INIT and 0 < left <= grace:
            return left  # its controller is about to act: one status is written then, not two
        groups = self.groups_cache.current(key, workload, release, source) if source.uid else None
        now = self._clock()
        known = release.status.previous
        snapshot = Snapshot(
            release=release,
            workload=workload,
            groups=groups,
            others=others,
            settings=self._caches.in_effect(),
            timing=self._timing,
            source=source,
            previous=known if known.uid else previous(release, others),
        )
        decision = decide(snapshot, now)
        if decision.read_live and groups is not None:
            targets = await self._live.refresh_and_find_targets(snapshot, groups, [release, *others], now)
            snapshot = replace(snapshot, targets=targets)
            decision = decide(snapshot, now)
        decision = self._with_sets(workload, release, source, decision)
        try:
            release = await self._executor.carry_out(release, workload, decision)
        except Refused as refusal:
            return await self._report_refusal(key, workload, snapshot.release, refusal)
        self._refusals.pop(key, None)
        if groups is not None and decision.lists:
            groups.written_revision = groups.revision
        if decision.requeue_after is None and source.uid:
            self.groups_cache.evict_rebuildable(key)
        return decision.requeue_after

    async def _source(self, workload: Workload, release: Release) -> SourceRef:
        """The object that holds the present template; an empty one as long as there is none."""
        known, adapter = release.status.source, BY_KIND[workload.kind]
        there = adapter.intermediate is None or any(each.uid == known.uid for each in self._caches.sets_of(workload))
        if known.uid and there:
            return known
        if not workload.up_to_date:
            return known
        live = await self._live.workload(workload)
        if live.workload.version != workload.version:
            return known
        found = present(live.workload, await self._live.revisions(live.workload))
        if found is None:
            return known
        source = found.source
        return SourceRef(source.kind, source.name, source.uid, version_of(release), source.fingerprint)

    def _with_sets(self, workload: Workload, release: Release, source: SourceRef, decision: Decision) -> Decision:
        """What stands between the workload and its pods gets its version label back as well."""
        if workload.selects_version or decision.read_live:
            return decision
        back = tuple(
            PutBack(each)
            for each in self._caches.sets_of(workload)
            if each.metadata.uid == source.uid and each.version != version_of(release)
        )
        return replace(decision, before=(*decision.before, *back)) if back else decision

    async def _report_refusal(self, key: WorkloadKey, workload: Workload, release: Release, refusal: Refused) -> float:
        """Say so where people look, and try again, less and less often."""
        count = self._refusals.get(key, 0)
        self._refusals[key] = count + 1
        current = self._caches.releases.get(release.metadata.namespace, release.metadata.name) or release
        await self._executor.carry_out(current, workload, rollback.refused(current, str(refusal.cause), self._clock()))
        return min(_REFUSED_FIRST * 2.0 ** min(count, 10), _REFUSED_LAST)


def _check_key(workload: Workload, release: Release | None) -> tuple[str, ...]:
    """What has to change for a may_be_ungated release to be looked at once more."""
    source = release.status.source.uid if release is not None else ""
    return workload.metadata.uid, str(workload.generation), workload.version, workload.fingerprint, source
