"""Controller: creates, verifies, suspends and rolls back the releases of workloads. Its keys are workloads."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from altershield.api import names
from altershield.api.change_workload import SourceRef, WorkloadState
from altershield.releases import is_current, is_of_template, state
from altershield.releases.history import entry_name
from altershield.releases.leftovers import restored_paths
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError
from kube_base.access.events import EventRecorder
from reconciler.cluster.caches import Caches
from reconciler.cluster.gates import ReleaseGates
from reconciler.cluster.ownership import WorkloadKey, is_controlled_by
from reconciler.cluster.release import Release, went_back_to
from reconciler.cluster.turns import Turns
from reconciler.cluster.writer import Writer
from reconciler.policies.acceptance import UrlRule, any_url
from reconciler.policies.applied import AppliedPolicies
from reconciler.releases.decisions import answers as request_answers
from reconciler.releases.decisions import bypass, restored_fields, rollback, steps
from reconciler.releases.decisions.decide import decide
from reconciler.releases.decisions.history import superseded, with_history
from reconciler.releases.decisions.overridden import overridden, overridden_before
from reconciler.releases.findings.ungated import current_revision
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.groups import PodGroupsCache
from reconciler.releases.reads.live import LiveReader, owns
from reconciler.releases.reads.targets import TargetReader
from reconciler.releases.stuck_pods_check import StuckPodsCheck
from reconciler.releases.terms import rules
from reconciler.releases.terms.effects import Decision, KeepHistory, RestoreLabel
from reconciler.releases.terms.snapshot import Snapshot
from reconciler.releases.ungated_check import UngatedCheck
from reconciler.releases.writes.creation import ReleaseCreator, previous, processed
from reconciler.releases.writes.events import ReleaseEvents
from reconciler.releases.writes.executor import Executor
from reconciler.releases.writes.history import HistoryWriter
from reconciler.releases.writes.holds import HoldRefused
from reconciler.releases.writes.reports import RETRY_SECONDS, OrderServer, Reporter, is_refused
from reconciler.releases.writes.retries import Retry, next_retry
from reconciler.releases.writes.rollback import Refused
from reconciler.releases.writes.written import WrittenReader

_FILLING = 1.0  # seconds until the next attempt, while the caches do not have all objects of a namespace
_CREATION_SECONDS = 10.0  # in which a workload's controller usually creates an object with the new template


class ReleaseReconciler:
    """`clock` returns Unix seconds by the API server's clock. `batch_wait`: seconds after which an incomplete batch is
    verified. `separation_of_duties`: see `ReleaseCreator`."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        metrics: ReleaseMetrics,
        clock: Callable[[], float],
        *,
        timing: Timing,
        batch_wait: int,
        history_limit: int = 0,
        turns: Turns,
        server: OrderServer | None = None,
        url_rule: UrlRule = any_url,
        separation_of_duties: bool = False,
    ) -> None:
        self.groups_cache = PodGroupsCache(caches, timing, clock)
        self._caches = caches
        self._clock = clock
        self._timing = timing
        self._live = LiveReader(client)
        self._targets = TargetReader(client, caches, self._live)
        policies = AppliedPolicies(client, caches, url_rule)
        self._creator = ReleaseCreator(
            caches,
            writer,
            policies,
            clock,
            batch_wait,
            timing,
            WrittenReader(caches, self._live),
            separation_of_duties=separation_of_duties,
        )
        history = HistoryWriter(caches, writer, self._live, history_limit)
        self._executor = Executor(caches, writer, self._live, recorder, metrics, clock, history=history)
        self._events = ReleaseEvents(recorder, clock)
        self._ungated = UngatedCheck(caches, writer, self._live, self._creator, metrics, clock)
        self._stuck_pods = StuckPodsCheck(client, caches, writer, self._live, self._events, timing, clock)
        self._gates = ReleaseGates(caches, writer, clock, turns)
        self._reporter = Reporter(server, writer, clock)
        self._server = server is not None
        self._retries: dict[WorkloadKey, Retry] = {}
        """The retries of refused writes."""

    def forget(self) -> None:
        """Forget what was seen of pods. It is rebuilt when it is needed."""
        self.groups_cache.clear()
        self._stuck_pods.clear()

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """Returns the seconds after which the workload is reconciled again, or None."""
        due = await self._reconcile(key)
        self._gates.settle(key)  # not after an error: the outcome of a write may not be known
        return due

    async def _reconcile(self, key: WorkloadKey) -> float | None:
        workload = self._caches.workload(key)
        if workload is None or workload.metadata.deleting or not self._caches.governed(key.namespace):
            self.groups_cache.discard(key)
            self._retries.pop(key, None)
            self._ungated.discard(key)
            self._stuck_pods.discard(key)
            return None
        if self._caches.filling(key.namespace) is not None:
            return _FILLING
        existing = [each for each in self._caches.releases_of(workload) if each.metadata.deletion_timestamp is None]
        own = [each for each in existing if is_controlled_by(each, workload)]
        delays = [self._events.write(each, workload) for each in own]
        delays.append(await self._step(key, workload, existing, own))
        return min((each for each in delays if each is not None), default=None)

    async def _step(
        self, key: WorkloadKey, workload: Workload, existing: Sequence[Release], own: Sequence[Release]
    ) -> float | None:
        """One step of the release that needs one: the end of a rollback, the answer to a request, the begin of a
        release, or a step of the current release."""
        for other in own:
            if (
                state(other) is WorkloadState.ROLLBACK
                and version_of(other) != workload.version
                and names.is_version(workload.version)
                and not is_of_template(other, workload.fingerprint)
            ):
                return await self._end_rollback(key, workload, other)
        for other in own:
            request = other.status.request
            if request is not None and version_of(other) != workload.version:
                decision = request_answers.not_current(other, workload, request, self._clock())
                await self._executor.carry_out(other, workload, with_history(other, decision))
                return 0.0
        for other in own:
            if version_of(other) != workload.version:
                await self._reporter.close(other, workload)
        await self._ungated.refresh_denied(key, workload, own)
        release = next((each for each in own if version_of(each) == workload.version), None)
        handled, release = await self._ungated.check(key, workload, own, release)
        if handled:
            return None
        if not names.is_version(workload.version):
            return None
        if release is None or not is_current(release, workload):
            await self._begin(workload, existing)
            return None
        release = await self._with_overrides(workload, release)
        if state(release) is WorkloadState.FAILED and not is_refused(release):
            await self._begin(workload, existing)  # the failed release is an earlier one: the current release begins
            return None
        due = None
        if state(release) is not WorkloadState.FAILED or release.status.request is not None:
            due = await self._verify(
                key, workload, release, [each for each in existing if each.metadata.uid != release.metadata.uid]
            )
        present = self._caches.releases.get(release.metadata.namespace, release.metadata.name) or release
        freed = await self._stuck_pods.free(
            key, workload, present, [each for each in own if each.metadata.uid != release.metadata.uid]
        )
        return min((each for each in (due, freed) if each is not None), default=None)

    async def _end_rollback(self, key: WorkloadKey, workload: Workload, release: Release) -> float | None:
        """Close a ChangeWorkload in the state Rollback whose version is no longer the workload's current one."""
        paths = await self._restored_paths(workload, release) if went_back_to(release, workload) else ()
        decision = rollback.close(release, workload, self._clock(), paths)
        await self._executor.carry_out(release, workload, with_history(release, decision))
        self._retries.pop(key, None)
        return 0.0

    async def _restored_paths(self, workload: Workload, failed: Release) -> tuple[str, ...]:
        """The fields that the failed version had removed from the template that the workload has again. Empty if the
        history does not have the failed version."""
        name = entry_name(workload.group_kind, workload.metadata.name, version_of(failed))
        try:
            entry = await self._live.entry(workload, name)
        except ConflictError:
            return ()
        if not owns(workload, entry):
            return ()
        return restored_paths((await self._live.workload(workload)).template, entry.template)

    # the begin of a release

    async def _begin(self, workload: Workload, existing: Sequence[Release]) -> None:
        """Begin the release of the current version, which has no ChangeWorkload, or the ChangeWorkload of an earlier
        release.

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
            for each in superseded(release, [each for each in existing if is_controlled_by(each, workload)]):
                ended = steps.superseded(each, self._clock())
                kept = KeepHistory(ended or each.status)
                await self._executor.carry_out(each, workload, Decision(ended, before=(kept,)))
            release = await self._record_leftovers(workload, release, existing)
            others = [each for each in existing if each.metadata.uid != release.metadata.uid]
            rollback_of_ours = bypass.is_rollback(
                workload, [each for each in others if is_controlled_by(each, workload)]
            )
            if not rollback_of_ours and bypass.bypasses(release, workload):
                decision = bypass.bypassed(release, release.spec.released_by, self._clock())
                await self._executor.carry_out(release, workload, with_history(release, decision))
            await self._executor.label(workload, processed(keep_pass=rollback_of_ours))

    async def _record_leftovers(self, workload: Workload, release: Release, existing: Sequence[Release]) -> Release:
        """Record fields of the template that a rollback brought back. Returns the ChangeWorkload afterwards."""
        failed = restored_fields.brought_back(workload, existing)
        if failed is None:
            return release
        live = await self._live.workload(workload)
        applied = live.applied
        if applied is not None and applied.is_server_side:
            return release  # its client removes the fields that its next manifest lacks
        manifest = applied.template if applied is not None else None
        decision = restored_fields.kept(release, failed, live.template, manifest, self._clock())
        return await self._executor.carry_out(release, workload, decision)

    @staticmethod
    def _begins_anew(workload: Workload, release: Release) -> bool:
        """Whether the ChangeWorkload is about an earlier release of this version, so that it has to be started again.

        A ChangeWorkload that was adopted in the state Suspend is not started again: the suspension stays in force.
        """
        if state(release) is WorkloadState.FAILED:
            return True
        if release.spec.workload_generation == 0:
            return state(release) is not WorkloadState.SUSPEND
        return not workload.processed and release.spec.workload_generation != workload.generation

    # a release under way

    async def _with_overrides(self, workload: Workload, release: Release) -> Release:
        """Record the overrides that the release used. Returns the ChangeWorkload afterwards."""
        overrides = self._gates.overrides_of(workload)
        used = overridden(release, overrides, self._clock())
        if used is not None:
            release = await self._executor.carry_out(release, workload, with_history(release, used))
        if overridden_before(release, overrides, (), self._clock()) is None:
            return release
        recorded = await self._live.recorded_actions(workload)
        earlier = overridden_before(release, overrides, recorded, self._clock())
        # the release keeps it in the history when it ends: an entry would say after a crash that it is known already
        return await self._executor.carry_out(release, workload, earlier) if earlier is not None else release

    async def _verify(
        self, key: WorkloadKey, workload: Workload, release: Release, others: Sequence[Release]
    ) -> float | None:
        """One step of the current release: decide, with live reads where needed, and carry out the decision."""
        source, policy = await self._source(workload, release), release.spec.policy
        timing = rules.timing_of(self._timing, policy)
        grace = min(_CREATION_SECONDS, timing.start_timeout)
        left = release.spec.create_time_unix + grace - self._clock()
        if not source.uid and not workload.stands and state(release) is WorkloadState.INIT and 0 < left <= grace:
            return left  # wait until the object exists: one status write instead of two
        reported = await self._reporter.report(release)
        closed = await self._gates.closed(workload, release) if workload.steps is not None else ()
        groups = await self.groups_cache.current(key, workload, release, source) if source.uid else None
        now = self._clock()  # no wait from here to the decision: the groups show this moment
        snapshot = Snapshot(
            release=release,
            workload=workload,
            groups=groups,
            others=others,
            settings=rules.settings_of(self._caches.in_effect(), policy),
            timing=timing,
            source=source,
            previous=release.status.previous if release.status.previous.uid else previous(release, others),
            batches=self._caches.batches_of(release) if rules.checks_release(policy) else (),
            checked=self._server or rules.checks_batches(policy),
            budget=self._caches.budgets.exhausted_budget(key.namespace, workload.metadata.uid),
            closed=closed,
            reported=reported,
        )
        decision = decide(snapshot, now)
        if decision.read_events and groups is not None:
            await self._targets.read_words(snapshot, groups, now)
            snapshot = replace(snapshot, events_read=True)
            decision = decide(snapshot, now)
        if decision.read_pods:
            await self._targets.refresh(snapshot, now)
            snapshot = replace(snapshot, pods_read=True)
            decision = decide(snapshot, now)
        if decision.read_live:
            targets = await self._targets.refresh_and_find_targets(snapshot, [release, *others], now)
            own_pause = await self._live.own_pause(workload)
            if groups is not None:
                groups.refresh(workload, now)
            snapshot = replace(snapshot, targets=targets, pods_read=True, own_pause=own_pause)
            decision = decide(snapshot, now)
        decision = self._with_sets(workload, release, source, decision)
        decision = with_history(release, decision, workload.applied, snapshot, now)
        try:
            release = await self._executor.carry_out(release, workload, decision)
        except (Refused, HoldRefused) as refusal:
            return await self._report_refusal(key, workload, snapshot.release, refusal)
        self._retries.pop(key, None)
        if groups is not None and decision.lists:
            groups.lists_are_written()
        retry = RETRY_SECONDS if snapshot.reported is not None and snapshot.reported.status == "Unknown" else None
        delays = [decision.requeue_after, await self._reporter.close(release, workload), retry]
        due = min((each for each in delays if each is not None), default=None)
        if due is None and source.uid:
            self.groups_cache.evict_rebuildable(key)
        return due

    async def _source(self, workload: Workload, release: Release) -> SourceRef:
        """The object that holds the current template; empty if it does not exist yet.

        The known object does not hold it any more if somebody has edited it: the workload's controller then creates
        another one, which has a higher number.
        """
        known, adapter = release.status.source, BY_KIND[workload.group_kind]
        sets = self._caches.sets_of(workload)
        newest = max((each.number for each in sets), default=0)
        same = adapter.intermediate is None or any(each.uid == known.uid and each.number >= newest for each in sets)
        if known.uid and same:
            return known
        if not workload.up_to_date:
            return known
        live = await self._live.workload(workload)
        if live.workload.version != workload.version:
            return known
        found = current_revision(live.workload, await self._live.revisions(live.workload))
        if found is None:
            return known
        source = found.source
        return SourceRef(source.kind, source.name, source.uid, version_of(release), source.fingerprint)

    def _with_sets(self, workload: Workload, release: Release, source: SourceRef, decision: Decision) -> Decision:
        """The decision, which also restores the version label of the ReplicaSet (or similar object) of this release."""
        if workload.selects_version or decision.read_live:
            return decision
        restored = tuple(
            RestoreLabel(each)
            for each in self._caches.sets_of(workload)
            if each.metadata.uid == source.uid and each.version != version_of(release)
        )
        return replace(decision, before=(*decision.before, *restored)) if restored else decision

    async def _report_refusal(
        self, key: WorkloadKey, workload: Workload, release: Release, refusal: Refused | HoldRefused
    ) -> float:
        """Report a refused rollback, or a refused write of a hold, in the condition and as an Event. Returns the
        seconds until the next attempt."""
        current = self._caches.releases.get(release.metadata.namespace, release.metadata.name) or release
        now = self._clock()
        if isinstance(refusal, Refused):
            report = rollback.refused(current, str(refusal.cause), now)
        else:
            report = steps.refused(current, refusal.waiting, str(refusal), now)
        await self._executor.carry_out(current, workload, report)
        retry = self._retries[key] = next_retry(self._retries.get(key), now)
        return retry.due - now
