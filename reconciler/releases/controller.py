"""Controller: everything about a workload's releases. Its keys are workloads."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from altershield.api import labels, names
from altershield.api.kinds import ConditionType, SourceRef, WorkloadState
from altershield.api.meta import Condition, find_condition, rfc3339
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from altershield.releases import is_current, is_of_template, rolled_back, state
from altershield.releases.record import version as version_of
from altershield.workloads import BY_KIND, is_of
from altershield.workloads.workload import Workload
from reconciler.caches import Caches, WorkloadKey, belongs
from reconciler.metrics import Metrics
from reconciler.releases import rollback
from reconciler.releases.books import Books
from reconciler.releases.carry_out import Carrier, Refused
from reconciler.releases.decide import decide
from reconciler.releases.effects import Decision, PutBack
from reconciler.releases.facts import Facts
from reconciler.releases.health import Timing
from reconciler.releases.kept import Kept
from reconciler.releases.look import Look
from reconciler.releases.recording import Recording, previous, processed
from reconciler.releases.slipped import Refresh, Restore, Slip, doubtful, judge, present
from reconciler.writer import Operation, Writer, label_path

_VERSION = label_path(labels.VERSION)
_REFUSED_FIRST = 5.0  # seconds until a refused write is tried again, doubling up to
_REFUSED_LAST = 300.0
_ABOUT_TO_ACT = 10.0  # seconds in which a workload's controller should have made something of its template


class ReleasesController:
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
        self.books = Books(caches, timing, clock)
        self._caches = caches
        self._clock = clock
        self._timing = timing
        self._metrics = metrics
        self._look = Look(client, caches)
        self._recording = Recording(caches, writer, clock, batch_wait)
        self._carrier = Carrier(caches, writer, self._look, recorder, metrics, clock)
        self._writer = writer
        self._refused: dict[WorkloadKey, int] = {}
        self._fresh: set[WorkloadKey] = set()
        """Workloads whose rolled-back versions were looked at since this process began."""
        self._cleared: dict[WorkloadKey, tuple[str, ...]] = {}
        """Doubtful releases that were looked at and are none that slipped past the gate, by what was looked at."""

    async def reconcile(self, key: WorkloadKey) -> float | None:
        """In how many seconds to look again, or None."""
        workload = self._caches.workload(key)
        if workload is None or workload.metadata.deleting or not self._caches.governed(key.namespace):
            self.books.close(key)
            self._refused.pop(key, None)
            self._cleared.pop(key, None)
            self._fresh.discard(key)
            return None
        records = [each for each in self._caches.records_of(workload) if each.metadata.deletion_timestamp is None]
        own = [each for each in records if belongs(each, workload)]
        for other in own:
            if (
                state(other) is WorkloadState.ROLLBACK
                and version_of(other) != workload.version
                and names.is_version(workload.version)
                and not is_of_template(other, workload.fingerprint)
            ):
                return await self._close(key, workload, other)
        await self._keep_denied(key, workload, own)
        record = next((each for each in own if version_of(each) == workload.version), None)
        if doubtful(workload, record) and self._cleared.get(key) != _looked_at(workload, record):
            handled, record = await self._doubt(key, workload, own, record)
            if handled:
                return None
        if not names.is_version(workload.version):
            return None
        # what failed is history, but for the release that is the present one
        if record is None or not is_current(record, workload) or state(record) is WorkloadState.FAILED:
            await self._begin(workload, records)
            return None
        return await self._go_on(key, workload, record, [each for each in records if each is not record])

    async def _close(self, key: WorkloadKey, workload: Workload, record: Kept) -> float | None:
        """A version that is being rolled back is not the present one any more."""
        source, adapter = record.status.source, BY_KIND[workload.kind]
        pods = [pod for pod in self._caches.pods_of(workload) if is_of(adapter, pod, source.name, source.uid)]
        decision = rollback.close(record, workload, rollback.stuck_pods(workload, pods), self._clock())
        await self._carrier.carry_out(record, workload, decision)
        self._refused.pop(key, None)
        return 0.0 if decision.again is None else decision.again

    # what begins

    async def _begin(self, workload: Workload, records: Sequence[Kept]) -> None:
        """The present version has no record, or one of an earlier release. The label comes last, which lets
        verification begin; the write leads here again."""
        record = await self._recording.existing(workload, workload.version)
        if record is None:
            record = await self._recording.create(workload, workload.version)
        elif self._begins_anew(workload, record):
            others = [each for each in records if each.metadata.uid != record.metadata.uid]
            record = await self._recording.start_anew(workload, record, others)
        if not workload.processed:
            await self._carrier.label(workload, processed(workload))

    @staticmethod
    def _begins_anew(workload: Workload, record: Kept) -> bool:
        """Whether what the record says is about an earlier release of its version. A suspension that a workload takes
        over from a namesake is not."""
        if state(record) is WorkloadState.FAILED:
            return True
        if record.spec.workload_generation == 0:
            return state(record) is not WorkloadState.SUSPEND
        return not workload.processed and record.spec.workload_generation != workload.generation

    async def _doubt(
        self, key: WorkloadKey, workload: Workload, own: Sequence[Kept], record: Kept | None
    ) -> tuple[bool, Kept | None]:
        """Look closer at a release that may have slipped past the gate. Whether that was all for now, and the record
        of the present version."""
        if not workload.up_to_date:
            return not names.is_version(workload.version), record
        seen = await self._look.workload(workload)
        if seen.workload.generation != workload.generation or seen.workload.fingerprint != workload.fingerprint:
            return True, record  # the watch brings it
        revisions = await self._look.revisions(seen.workload)
        gated_since = self._caches.gated_since(workload.metadata.namespace)
        found = judge(seen.workload, own, revisions, released_at=seen.released_at, gated_since=gated_since)
        match found:
            case None:
                if present(seen.workload, revisions) is not None and gated_since < math.inf:
                    self._cleared[key] = _looked_at(workload, record)
                return False, record
            case Refresh(source) if record is not None:
                self._fresh.discard(key)
                return False, await self._refresh(record, source, [each.source for each in revisions])
            case Refresh():
                return False, record
            case Restore(version):
                await self._stamp(seen.workload, version)
                return True, record
            case Slip():
                await self._slip(seen.workload, own, found)
                return True, record

    async def _keep_denied(self, key: WorkloadKey, workload: Workload, own: Sequence[Kept]) -> None:
        """What was rolled back is denied by the fingerprint of its template, which an API server with other defaults
        shows with another one. That it has other defaults, nothing tells: so it is looked at whenever a reconciler
        begins to lead, and when the present version shows it."""
        if key in self._fresh:
            return
        denied = [each for each in own if rolled_back(each) and each.status.source.uid]
        shown = {each.source.uid: each.source for each in await self._look.revisions(workload)} if denied else {}
        for record in denied:
            source = record.status.source
            now = shown.get(source.uid)
            if now is not None and now.fingerprint != source.fingerprint:
                fresh = msgspec.structs.replace(source, fingerprint=now.fingerprint)
                status = msgspec.structs.replace(record.status, source=fresh)
                await self._writer.save_record(record, status, lists=False)
        self._fresh.add(key)

    async def _refresh(self, record: Kept, source: SourceRef, sources: Sequence[SourceRef]) -> Kept:
        """The API server shows templates otherwise than before: what is remembered of them follows."""
        status = msgspec.structs.replace(record.status, source=source)
        before = record.status.previous
        shown = next((each for each in sources if each.uid == before.uid), None)
        if record.status.source.uid and shown is not None:
            status = msgspec.structs.replace(
                status, previous=msgspec.structs.replace(before, fingerprint=shown.fingerprint)
            )
        return await self._writer.save_record(record, status, lists=False)

    async def _slip(self, workload: Workload, own: Sequence[Kept], slip: Slip) -> None:
        """Record it as a release, and tell. Its message names the object and its revision, so what has the same one
        was recorded before. The workload's label comes last."""
        record = await self._recording.existing(workload, slip.version)
        known = find_condition(record.status.conditions, ConditionType.SLIPPED) if record is not None else None
        recorded = known is not None and known.message == slip.message
        if record is None:
            record = await self._recording.create(workload, slip.version)
        begun = record.spec.workload_generation == workload.generation
        if not recorded or not begun:
            condition = Condition(
                ConditionType.SLIPPED,
                "True",
                slip.reason,
                slip.message,
                last_transition_time=rfc3339(self._clock()),
                observed_generation=record.metadata.generation,
            )
            others = [each for each in own if each.metadata.uid != record.metadata.uid]
            await self._recording.start_anew(workload, record, others, condition)
            if not recorded:
                self._carrier.announce(workload, "ReleaseSlipped", slip.message)
                self._metrics.slipped(slip.reason)
        await self._stamp(workload, slip.version)

    async def _stamp(self, workload: Workload, version: str) -> None:
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

    async def _go_on(self, key: WorkloadKey, workload: Workload, record: Kept, others: Sequence[Kept]) -> float | None:
        source = await self._source(workload, record)
        patience = min(_ABOUT_TO_ACT, self._timing.start_timeout)
        left = record.spec.create_time_unix + patience - self._clock()
        if not source.uid and state(record) is WorkloadState.INIT and 0 < left <= patience:
            return left  # its controller is about to act: one status is written then, not two
        book = self.books.open(key, workload, record, source) if source.uid else None
        now = self._clock()
        known = record.status.previous
        facts = Facts(
            record=record,
            workload=workload,
            book=book,
            others=others,
            settings=self._caches.in_effect(),
            timing=self._timing,
            source=source,
            previous=known if known.uid else previous(record, others),
        )
        decision = decide(facts, now)
        if decision.look and book is not None:
            targets = await self._look.around(facts, book, [record, *others], now)
            facts = replace(facts, targets=targets)
            decision = decide(facts, now)
        decision = self._with_sets(workload, record, source, decision)
        try:
            record = await self._carrier.carry_out(record, workload, decision)
        except Refused as refusal:
            return await self._was_refused(key, workload, facts.record, refusal)
        self._refused.pop(key, None)
        if book is not None and decision.lists:
            book.written = book.revision
        if decision.again is None and source.uid:
            self.books.rest(key)
        return decision.again

    async def _source(self, workload: Workload, record: Kept) -> SourceRef:
        """The object that holds the present template; an empty one as long as there is none."""
        known, adapter = record.status.source, BY_KIND[workload.kind]
        there = adapter.between is None or any(each.uid == known.uid for each in self._caches.sets_of(workload))
        if known.uid and there:
            return known
        if not workload.up_to_date:
            return known
        seen = await self._look.workload(workload)
        if seen.workload.version != workload.version:
            return known
        found = present(seen.workload, await self._look.revisions(seen.workload))
        if found is None:
            return known
        source = found.source
        return SourceRef(source.kind, source.name, source.uid, version_of(record), source.fingerprint)

    def _with_sets(self, workload: Workload, record: Kept, source: SourceRef, decision: Decision) -> Decision:
        """What stands between the workload and its pods gets its version label back as well."""
        if workload.selects_version or decision.look:
            return decision
        back = tuple(
            PutBack(each)
            for each in self._caches.sets_of(workload)
            if each.metadata.uid == source.uid and each.version != version_of(record)
        )
        return replace(decision, before=(*decision.before, *back)) if back else decision

    async def _was_refused(self, key: WorkloadKey, workload: Workload, record: Kept, refusal: Refused) -> float:
        """Say so where people look, and try again, less and less often."""
        count = self._refused.get(key, 0)
        self._refused[key] = count + 1
        current = self._caches.records.get(record.metadata.namespace, record.metadata.name) or record
        await self._carrier.carry_out(current, workload, rollback.refused(current, str(refusal.cause), self._clock()))
        return min(_REFUSED_FIRST * 2.0 ** min(count, 10), _REFUSED_LAST)


def _looked_at(workload: Workload, record: Kept | None) -> tuple[str, ...]:
    """What has to change for a doubtful release to be looked at once more."""
    source = record.status.source.uid if record is not None else ""
    return workload.metadata.uid, str(workload.generation), workload.version, workload.fingerprint, source
