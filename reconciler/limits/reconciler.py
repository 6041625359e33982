"""Controller: counts releases and failures into the status of each ReleaseLimit, and makes a ReleaseFreeze when its
fuse trips.

The counts follow from the ChangeWorkloads in the caches, and from the status, which keeps what ended in the period. A
trip is stored in the status, then the freeze is created, then the status says so. When the freeze has ended or was
deleted, earlier failures do not count any more.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

import msgspec

from altershield.api.announcements import announcement
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import CountedRelease, ReleaseLimit, ReleaseLimitStatus, Trip
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import Judged
from altershield.api.meta import set_condition
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS
from altershield.api.selectors import Selector
from altershield.gates import freezes
from altershield.gates.limits import COUNTED_AS, Limit, counted, in_force
from altershield.gates.release import Release as Judgeable
from altershield.gates.release import selects_any, selects_namespace
from altershield.releases import is_current
from altershield.workloads import BY_KIND
from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError, NotFoundError
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.times import rfc3339, unix
from reconciler.cluster.accepted_specs import accepted
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import FREEZES, LIMITS, HoldingLimits
from reconciler.cluster.ownership import is_controlled_by, workload_key
from reconciler.cluster.release import Release
from reconciler.cluster.turns import Turns, Waiting
from reconciler.cluster.writer import Writer
from reconciler.limits import counting, fuse
from reconciler.limits.counting import Found
from reconciler.limits.labels import Labels
from reconciler.machinery.announcer import Announcer

COUNTED = "counted"
"""The index of ChangeWorkloads that may count: see `index_values`."""

_MOVING, _FAILED, _WAITING = "under way", "failed", "waiting"
_SECONDS_BETWEEN = 1.0
"""The least seconds between two writes of the counts of a limit: many releases may begin at the same time."""


def index_values(release: Release) -> Iterable[str]:
    """The values of a ChangeWorkload in the index COUNTED."""
    yield counting.hour_of(release)
    if counting.is_under_way(release):
        yield _MOVING
    if counting.has_failed_first(release):
        yield _FAILED
    if counting.waits_for_turn(release):
        yield _WAITING


class LimitReconciler:
    """Its keys are the namespace and name of a ReleaseLimit. `clock` returns Unix seconds. `user`: the user name of the
    reconciler."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        clock: Callable[[], float],
        *,
        labels: Labels,
        turns: Turns,
        user: str,
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock
        self._user = user
        self._labels = labels
        self._turns = turns
        self._holding = HoldingLimits(caches)
        self._written: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> float | None:
        """Count, and update the status. Returns the seconds after which the limit is reconciled again, or None."""
        limit = self._caches[LIMITS].get(*key)
        placed = in_force(limit) if limit is not None else None
        if limit is None or placed is None:
            self._written.pop(key, None)
            self._turns.forget(key)
            return None
        if self._caches.filling(key[0]) is not None:
            return _SECONDS_BETWEEN
        left = self._written.get(key, 0.0) + _SECONDS_BETWEEN - self._clock()
        tripped = limit.status.trip
        if tripped is not None and not tripped.made:
            await self._make(limit, tripped)
            status = msgspec.structs.replace(limit.status, trip=msgspec.structs.replace(tripped, made=True))
            await self._save(limit, status)
            return 0.0
        if 0.0 < left <= _SECONDS_BETWEEN:
            return left
        ends = await self._left(key[0], tripped) if tripped is not None else None
        status = await self._counted(limit, placed, over=tripped is not None and ends is None)
        if status != limit.status:
            limit = await self._save(limit, status)
            self._written[key] = self._clock()
        if limit.status.trip is not None and not limit.status.trip.made:
            return 0.0
        uid, announced = limit.metadata.uid, limit.status.announcements
        retry = self._announcer.write(ObjectRef.of(RELEASE_LIMITS, limit.metadata), uid, announced)
        opens_at = self._turns.opens_at(key, self._clock())
        opens = max(0.0, opens_at - self._clock()) if opens_at is not None else None
        return min((each for each in (ends, retry, opens) if each is not None and each != inf), default=None)

    async def _save(self, limit: ReleaseLimit, status: ReleaseLimitStatus) -> ReleaseLimit:
        return await self._writer.save_status(self._caches[LIMITS], limit, status)

    # the freeze of the fuse

    async def _make(self, limit: ReleaseLimit, tripped: Trip) -> None:
        """Create the freeze, unless it exists. AlreadyExistsError: another object has its name."""
        wanted, namespace = fuse.freeze(limit, tripped, self._user), limit.metadata.namespace
        try:
            await self._writer.create(self._caches[FREEZES], wanted, namespace)
        except AlreadyExistsError:
            found = await self._live(namespace, tripped.freeze)
            blown = found.spec.fuse if found is not None else None
            if blown is None or blown.limit != limit.metadata.name:
                raise

    async def _left(self, namespace: str, tripped: Trip) -> float | None:
        """The seconds until the freeze ends; infinity: when a person ends it; None: it has ended, or does not exist any
        more."""
        # the cache of a new leader may not have the freeze yet
        found = self._caches[FREEZES].get(namespace, tripped.freeze) or await self._live(namespace, tripped.freeze)
        placed = freezes.in_force(found) if found is not None else None
        left = placed.ends - self._clock() if placed is not None else 0.0
        return left if left > 0 else None

    async def _live(self, namespace: str, name: str) -> ReleaseFreeze | None:
        try:
            return await self._client.get(RELEASE_FREEZES, name, namespace, as_=ReleaseFreeze)
        except NotFoundError:
            return None

    # the counts

    async def _counted(self, limit: ReleaseLimit, placed: Limit, *, over: bool) -> ReleaseLimitStatus:
        """The status as it should be. `over`: the freeze of the fuse has ended."""
        known, spec, now = limit.status, limit.spec, self._clock()
        found = await self._found(placed, now)
        since = rfc3339(now) if over else known.counted_since
        failures = counting.first_failures(known.failures, found, spec, now)
        tripped, announcements = None if over else known.trip, known.announcements
        if tripped is None:
            tripped = fuse.trip(limit.metadata.name, failures, spec.fuse, unix(since), now)
            if tripped is not None:
                failed = fuse.failed(failures, spec.fuse, unix(since), tripped)
                text = f"{fuse.reason(limit.metadata.name, failed)}; no release may begin until a person ends it"
                new = announcement("FuseTripped", f"ReleaseFreeze {tripped.freeze}: {text}", now)
                announcements = self._announcer.with_new(limit.metadata.uid, announcements, (new,))
        releases = counting.releases_begun(known.releases, found, spec, now)
        under_way = counting.releases_under_way(found, spec)
        self._give_turns(placed, releases, under_way, found, now)
        return ReleaseLimitStatus(
            releases=releases,
            under_way=under_way,
            failures=failures,
            counted_since=since,
            trip=tripped,
            announcements=announcements,
            conditions=set_condition(known.conditions, accepted(limit, self._caches.system_namespace), now),
            observed_generation=limit.metadata.generation,
        )

    def _give_turns(
        self,
        limit: Limit,
        releases: Sequence[CountedRelease],
        under_way: Sequence[CountedRelease],
        found: Iterable[Found],
        now: float,
    ) -> None:
        """Say who may begin next, by what counts now."""
        if not limit.holds:
            self._turns.forget(limit.place)
            return
        waiting = [each for each in self._waiting(found) if limit.place in each.places]
        self._turns.count(replace(limit, releases=counted(releases), under_way=counted(under_way)), waiting, now)

    def _waiting(self, found: Iterable[Found]) -> Iterator[Waiting]:
        """The releases that wait for nothing else than limits."""
        for each in found:
            release, workload = each.release, self._caches.workload(workload_key(each.release))
            hold = workload.steps if workload is not None else None
            if workload is None or hold is None or not (each.present and counting.waits_for_turn(release)):
                continue
            yield self._holding.waiting(workload, release, self._holding.of(release, hold))

    async def _found(self, limit: Limit, now: float) -> list[Found]:
        """The releases that may count, and that the limit selects, all as the caches are at the same moment."""
        selected = [each async for each in self._selected(limit, now)]
        found = []
        for each in selected:
            metadata, key = each.release.metadata, workload_key(each.release)
            release, workload = self._caches.releases.get(metadata.namespace, metadata.name), self._caches.workload(key)
            if release is None or workload is None or release.metadata.uid != metadata.uid:
                continue
            hold, present = workload.steps, is_current(release, workload)
            held = hold is not None and not hold.pods and not release.status.rollout.phase
            found.append(replace(each, release=release, present=present, held=present and held))
        return found

    async def _selected(self, limit: Limit, now: float) -> AsyncIterator[Found]:
        """The releases that may count, and that the limit selects."""
        rate, system = limit.rules.rate, self._caches.system_namespace
        values = {_MOVING, _FAILED, _WAITING, *(counting.hours(rate.period_seconds, now) if rate is not None else ())}
        candidates = {id(each): each for value in values for each in self._caches.releases.by_index(COUNTED, value)}
        for release in candidates.values():
            key = workload_key(release)
            workload = self._caches.workload(key)
            if workload is None or not is_controlled_by(release, workload):
                continue
            namespace = self._caches.namespaces.get("", key.namespace)
            judgeable = Judgeable(
                namespace=key.namespace,
                namespace_labels=namespace.metadata.labels if namespace is not None else {},
                labels=(),
                judged=limit.rules.judges[0],
            )
            if limit.namespace not in (system, key.namespace) or not selects_namespace(limit, judgeable, system):
                continue
            labels = await self._labels.of(release, workload) if limit.rules.selector != Selector() else {}
            if labels is None or not selects_any(limit, replace(judgeable, labels=(labels,))):
                continue
            named = NamedWorkload(
                key.namespace, BY_KIND[key.kind].resource.api_version, workload.kind, workload.metadata.name
            )
            change = Judged.CREATE if release.spec.workload_generation == 1 else Judged.UPDATE
            judged = not {*COUNTED_AS[change]}.isdisjoint(limit.rules.judges)
            yield Found(release, named, present=is_current(release, workload), judged=judged)
