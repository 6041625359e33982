"""The gates that are closed for a release in steps, and the limits that hold one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.overrides import ReleaseOverride
from altershield.api.gates.rules import Judged
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_OVERRIDES, RELEASE_WINDOWS
from altershield.api.rollout import Phase
from altershield.gates import freezes, limits, texts, windows
from altershield.gates.cached import CachedGates
from altershield.gates.gate import Gate
from altershield.gates.limits import COUNTED_AS, Limit
from altershield.gates.overrides import Asked, has_used, passing, target, used
from altershield.gates.release import Closed, Place
from altershield.gates.release import Release as Judgeable
from altershield.releases import passed
from altershield.releases.release import since, version_of
from altershield.workloads import change_workload_name
from altershield.workloads.hold import Hold
from altershield.workloads.workload import Workload
from kube_base.access.informer import Informer
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey, is_controlled_by, workload_key
from reconciler.cluster.release import Release
from reconciler.cluster.turns import Turn, Turns, Waiting
from reconciler.cluster.watch import Scope, Watch
from reconciler.cluster.writer import Writer

WINDOWS = Watch(RELEASE_WINDOWS, ReleaseWindow, Scope.GOVERNED_AND_SYSTEM)
FREEZES = Watch(RELEASE_FREEZES, ReleaseFreeze, Scope.GOVERNED_AND_SYSTEM)
LIMITS = Watch(RELEASE_LIMITS, ReleaseLimit, Scope.GOVERNED_AND_SYSTEM)
OVERRIDES = Watch(RELEASE_OVERRIDES, ReleaseOverride, Scope.GOVERNED_AND_SYSTEM)

WATCHES: tuple[Watch[Any], ...] = (WINDOWS, FREEZES, OVERRIDES)
"""What decides whether a release in steps may go on."""

_TARGET = "target"


def has_not_begun(release: Release) -> bool:
    """Whether a release in steps has no pod yet, because it waits before its first step."""
    rollout = release.status.rollout
    return rollout.phase == Phase.HELD and not rollout.passed_steps and not rollout.updated


class HoldingLimits:
    """The limits that hold releases until they may begin."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._limits = CachedGates(
            {limits.LIMITS: caches[LIMITS]},
            caches.namespaces,
            caches.system_namespace,
            lambda gate, each: gate.in_force(each),
        )

    @property
    def exist(self) -> bool:
        """Whether there is any limit."""
        return self._limits.exist

    def of(self, release: Release, hold: Hold) -> Mapping[Place, Limit]:
        """The limits that hold the release. A limit that judges updates or restarts holds both: see COUNTED_AS."""
        namespace = release.metadata.namespace
        asked = Judgeable(namespace, self._limits.labels_of(namespace), (hold.labels,))
        found = (
            limit
            for judged in COUNTED_AS[Judged.UPDATE]
            for limit in self._limits.judging(limits.LIMITS, replace(asked, judged=judged))
        )
        return {each.place: each for each in found if each.holds}

    def waiting(self, workload: Workload, release: Release, holding: Iterable[Place]) -> Waiting:
        """The release, as it waits for these limits."""
        named = NamedWorkload.of(release.metadata.namespace, release.spec.workload_ref)
        return Waiting(
            Turn(workload_key(release), named, version_of(release)),
            release.spec.create_time_unix,
            self._succeeded(workload, release),
            frozenset(holding),
        )

    def _succeeded(self, workload: Workload, release: Release) -> float:
        """When the release before this one succeeded, Unix seconds; 0: it did not."""
        others = [each for each in self._caches.releases_of(workload) if each.metadata.uid != release.metadata.uid]
        before = (each for each in others if passed(each) and is_controlled_by(each, workload))
        return max((float(since(each)) for each in before), default=0.0)


class ReleaseGates:
    """The gates in the caches. `clock` returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float], turns: Turns) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock
        self._turns = turns
        caches[OVERRIDES].add_index(_TARGET, lambda each: ("/".join(target(each, caches.system_namespace)),))
        informers: dict[Gate[Any, Any], Informer[Any]] = {
            windows.WINDOWS: caches[WINDOWS],
            freezes.FREEZES: caches[FREEZES],
        }
        self._gates = CachedGates(
            informers, caches.namespaces, caches.system_namespace, lambda gate, each: gate.in_force(each)
        )
        self._limits = HoldingLimits(caches)

    def overrides_of(self, workload: Workload) -> list[ReleaseOverride]:
        """The overrides for the workload."""
        metadata = workload.metadata
        return self._caches[OVERRIDES].by_index(_TARGET, f"{metadata.namespace}/{workload.kind}/{metadata.name}")

    async def closed(self, workload: Workload, release: Release) -> tuple[Closed, ...]:
        """The gates that are enforced and closed for the next step of the release; empty, if it is not made in steps.
        A release that waits for them uses an override that passes all of them. If none is closed for its first pods, it
        has a place under each limit until `settle`."""
        hold, metadata, now = workload.steps, workload.metadata, self._clock()
        if hold is None or not (self._gates.exist or self._limits.exist):
            return ()
        judgeable = Judgeable(
            metadata.namespace,
            self._gates.labels_of(metadata.namespace),
            (hold.labels,),
            workload=NamedWorkload.of(metadata.namespace, release.spec.workload_ref),
            repairs=True,  # of a workload whose failure tripped a fuse: it was admitted as a repair, or began after it
        )
        found = tuple(each for each in self._gates.closed(judgeable, now) if each.enforced)
        if has_not_begun(release):
            found += self._turn(workload, release, hold, now, takes=not found)
        overrides = self.overrides_of(workload) if found else []
        if not overrides:
            return found
        by = release.spec.released_by
        asked = Asked(metadata.namespace, workload.kind, metadata.name, metadata.uid, version_of(release), by)
        if release.status.rollout.phase == Phase.HELD:
            overrides = await self._use(overrides, found, asked, now)
        passes = partial(passing, asked=asked, system_namespace=self._caches.system_namespace, now=now)
        known = [each for each in overrides if has_used(each, asked)]
        return tuple(each for each in found if passes((each,), known) is None)

    def settle(self, key: WorkloadKey) -> None:
        """What was decided about the workload is carried out: a release that has not begun gives its places back."""

        def begun(turn: Turn) -> bool:
            name = change_workload_name(key.kind, key.name, turn.version)
            release = self._caches.releases.get(key.namespace, name)
            return release is not None and not has_not_begun(release)

        self._turns.settle(key, begun, self._clock())

    def _turn(self, workload: Workload, release: Release, hold: Hold, now: float, *, takes: bool) -> tuple[Closed, ...]:
        """The limits that hold the release. None holds it and `takes`: it has a place under each of them."""
        holding = self._limits.of(release, hold)
        asked = self._limits.waiting(workload, release, holding)
        closed = []
        for place, limit in holding.items():
            found = self._turns.limit(place, asked.turn, now)
            if found is None:
                closed.append(limits.uncounted(limit))
                continue
            counted, before = found
            present = replace(counted, rules=limit.rules)
            parts = list(present.closed_parts(asked.judged(place, before), now))
            if parts:
                closed.append(limits.closed_by(present, parts))
        if takes and not closed:
            self._turns.take(holding, asked.turn)
        return tuple(closed)

    async def _use(
        self, overrides: list[ReleaseOverride], closed: tuple[Closed, ...], asked: Asked, now: float
    ) -> list[ReleaseOverride]:
        """The overrides, with the uses that let the release pass all closed gates. ConflictError: a gatekeeper has
        recorded a use meanwhile."""
        found = passing(closed, overrides, asked, self._caches.system_namespace, now) or {}
        for override, gates in found.values():
            changed = used(override, asked, [texts.named(each) for each in gates], now)
            if changed is not None and changed is not override:
                stored = await self._writer.replace_status(self._caches[OVERRIDES], changed)
                overrides = [stored if each is override else each for each in overrides]
        return overrides
