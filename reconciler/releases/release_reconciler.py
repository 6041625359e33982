"""Controller: all that AlterShield does about a workload's releases. Its keys are workloads."""

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
from reconciler.machinery.caches import Caches
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.ownership import WorkloadKey, belongs
from reconciler.machinery.writer import Writer
from reconciler.releases import rollback
from reconciler.releases.creation import ReleaseCreator, previous, processed
from reconciler.releases.decide import decide
from reconciler.releases.effects import Decision, RestoreLabel
from reconciler.releases.executor import Executor, Refused
from reconciler.releases.health import Timing
from reconciler.releases.live_reader import LiveReader
from reconciler.releases.pod_groups_cache import PodGroupsCache
from reconciler.releases.projection import Release
from reconciler.releases.snapshot import Snapshot
from reconciler.releases.ungated import Refresh, Restore, UngatedRelease, classify, may_be_ungated, present

_VERSION = label_path(labels.VERSION)
_REFUSED_FIRST = 5.0  # seconds until the first retry of a refused write; each retry doubles them
_REFUSED_LAST = 300.0
_ABOUT_TO_ACT = 10.0  # seconds that a workload's controller usually needs to create an object with the new template


class ReleaseReconciler:
    """`clock` returns Unix seconds by the API server's clock. `batch_wait` is the number of seconds after which a batch
    is verified although it is not full."""

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
        """How often in a row the API server refused to release the older template, by workload."""
        self._denied_refreshed: set[WorkloadKey] = set()
        """Workloads whose fingerprints of rolled-back versions were refreshed since this process started."""
        self._checked: dict[WorkloadKey, tuple[str, ...]] = {}
        """By workload: the key of the last check that found the current release not to be ungated (see
        `_check_key`)."""

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """Returns the seconds after which the workload is reconciled again, or None."""
        workload = self._caches.workload(key)
        if workload is None or workload.metadata.deleting or not self._caches.governed(key.namespace):
            self.groups_cache.discard(key)
            self._refusals.pop(key, None)
            self._checked.pop(key, None)
            self._denied_refreshed.discard(key)
            return None
        existing = [each for each in self._caches.releases_of(workload) if each.metadata.deletion_timestamp is None]
        own = [each for each in existing if belongs(each, workload)]
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
        # a ChangeWorkload in the state Failed belongs to an earlier release: the current release begins anew
        if release is None or not is_current(release, workload) or state(release) is WorkloadState.FAILED:
            await self._begin(workload, existing)
            return None
        return await self._verify(key, workload, release, [each for each in existing if each is not release])

    async def _end_rollback(self, key: WorkloadKey, workload: Workload, release: Release) -> float | None:
        """Close a ChangeWorkload in the state Rollback whose version is no longer the workload's current one."""
        source, adapter = release.status.source, BY_KIND[workload.kind]
        pods = [
            pod for pod in self._caches.pods_of(workload) if is_pod_of_revision(adapter, pod, source.name, source.uid)
        ]
        decision = rollback.close(release, workload, rollback.stuck_pods(workload, pods), self._clock())
        await self._executor.carry_out(release, workload, decision)
        self._refusals.pop(key, None)
        return 0.0 if decision.requeue_after is None else decision.requeue_after

    # the begin of a release

    async def _begin(self, workload: Workload, existing: Sequence[Release]) -> None:
        """Begin the release of the current version, which has no ChangeWorkload, or one of an earlier release.

        The label `defense-status` is written last, because verification begins with it. That write queues the workload
        again.
        """
        release = await self._creator.existing(workload, workload.version)
        if release is None:
            release = await self._creator.create(workload, workload.version)
        elif self._begins_anew(workload, release):
            others = [each for each in existing if each.metadata.uid != release.metadata.uid]
            release = await self._creator.start_anew(workload, release, others)
        if not workload.processed:
            await self._executor.label(workload, processed(workload))

    @staticmethod
    def _begins_anew(workload: Workload, release: Release) -> bool:
        """Whether the ChangeWorkload is about an earlier release of this version, so that it has to be started again.

        A ChangeWorkload that was adopted in the state Suspend is not: the suspension stays in force.
        """
        if state(release) is WorkloadState.FAILED:
            return True
        if release.spec.workload_generation == 0:
            return state(release) is not WorkloadState.SUSPEND
        return not workload.processed and release.spec.workload_generation != workload.generation

    async def _check_ungated(
        self, key: WorkloadKey, workload: Workload, own: Sequence[Release], release: Release | None
    ) -> tuple[bool, Release | None]:
        """Find out with live reads whether the current release is ungated, and act on it.

        Returns whether this reconcile is finished, and the ChangeWorkload of the current version.
        """
        if not workload.up_to_date:
            return not names.is_version(workload.version), release
        live = await self._live.workload(workload)
        if live.workload.generation != workload.generation or live.workload.fingerprint != workload.fingerprint:
            return True, release  # the watch queues the workload when it brings the change
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
        """Refresh the fingerprints of the templates that were rolled back.

        The gatekeeper denies a rolled-back version by the fingerprint of its template. An API server with other
        defaults returns the same template with another fingerprint. Nothing announces such a change, so the
        fingerprints are compared whenever a reconciler becomes the leader, and when the current version shows a change.
        """
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
        """Store the fingerprints that the API server's new defaults give to the templates of this release and of the
        previous one."""
        status = msgspec.structs.replace(release.status, source=source)
        before = release.status.previous
        shown = next((each for each in sources if each.uid == before.uid), None)
        if release.status.source.uid and shown is not None:
            status = msgspec.structs.replace(
                status, previous=msgspec.structs.replace(before, fingerprint=shown.fingerprint)
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
            await self._creator.start_anew(workload, release, others, condition)
            if not announced:
                self._executor.announce(workload, "UngatedRelease", ungated.message)
                self._metrics.ungated(ungated.reason)
        await self._set_version(workload, ungated.version)

    async def _set_version(self, workload: Workload, version: str) -> None:
        """Write the version label and the labels that let verification begin. The pod template is not changed."""
        operations: list[Operation] = [
            # a release that was made meanwhile has another version
            {"op": "test", "path": "/metadata/resourceVersion", "value": workload.metadata.resource_version}
        ]
        if not workload.labelled:
            operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
        label: Operation = {"op": "add", "path": _VERSION, "value": version}
        await self._writer.patch(
            self._caches.workloads[workload.kind], workload, [*operations, label, *processed(workload)]
        )

    # a release under way

    async def _verify(
        self, key: WorkloadKey, workload: Workload, release: Release, others: Sequence[Release]
    ) -> float | None:
        """One step of the current release: decide, with live reads where needed, and carry out the decision."""
        source = await self._source(workload, release)
        grace = min(_ABOUT_TO_ACT, self._timing.start_timeout)
        left = release.spec.create_time_unix + grace - self._clock()
        if not source.uid and state(release) is WorkloadState.INIT and 0 < left <= grace:
            return left  # wait until the object exists: one status write instead of two
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
        """The object that holds the current template; empty if it does not exist yet."""
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
        """Also restore the version label of the ReplicaSet (or similar object) of this release."""
        if workload.selects_version or decision.read_live:
            return decision
        back = tuple(
            RestoreLabel(each)
            for each in self._caches.sets_of(workload)
            if each.metadata.uid == source.uid and each.version != version_of(release)
        )
        return replace(decision, before=(*decision.before, *back)) if back else decision

    async def _report_refusal(self, key: WorkloadKey, workload: Workload, release: Release, refusal: Refused) -> float:
        """Report a refused rollback in the condition and as an Event. Returns the seconds until the next attempt: they
        double with each one."""
        count = self._refusals.get(key, 0)
        self._refusals[key] = count + 1
        current = self._caches.releases.get(release.metadata.namespace, release.metadata.name) or release
        await self._executor.carry_out(current, workload, rollback.refused(current, str(refusal.cause), self._clock()))
        return min(_REFUSED_FIRST * 2.0 ** min(count, 10), _REFUSED_LAST)


def _check_key(workload: Workload, release: Release | None) -> tuple[str, ...]:
    """A doubtful release is checked again when one of these values changes."""
    source = release.status.source.uid if release is not None else ""
    return workload.metadata.uid, str(workload.generation), workload.version, workload.fingerprint, source
