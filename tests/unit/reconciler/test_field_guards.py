"""The condition Accepted of a FieldGuard, its Events, and what releases keep for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, SourceRef, WorkloadState, Written
from altershield.api.condition_types import ConditionType
from altershield.api.gates.field_guards import FieldChange, FieldGuard, FieldGuardSpec, FieldGuardStatus, FieldRule
from altershield.api.meta import Condition, find_condition
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.released_by import ReleasedBy
from altershield.api.selectors import Selector
from kube_base.access.errors import ConflictError
from kube_base.access.events import ObjectRef
from kube_base.meta import ObjectMeta
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.field_guards import WATCH, GuardReconciler, kept_paths
from reconciler.releases.writes.written import WrittenReader
from tests.support import workloads
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1, V2
from tests.unit.reconciler import filled
from tests.unit.reconciler.recording import Announcing

MEMORY = "spec.containers[*].resources.limits.memory"
IMAGES = "spec.containers[*].image"


@asynccontextmanager
async def governed() -> AsyncIterator[Caches]:
    """Caches of the empty governed namespaces `default` and `other`."""
    async with filled.empty_caches() as caches:
        filled.put(caches, filled.namespace(), filled.namespace("other"))
        yield caches


def spec(path: str = MEMORY, *changes: FieldChange, **fields: Any) -> FieldGuardSpec:
    return FieldGuardSpec(rules=(FieldRule("r", (path,), changes or (FieldChange.REVERTED,)),), **fields)


def put(caches: Caches, accepted: FieldGuardSpec | None, *, name: str = "g", namespace: str = "default") -> None:
    """Put a guard into the cache."""
    metadata = ObjectMeta(name, namespace, resource_version="1")
    caches[WATCH].observe(FieldGuard(metadata, accepted or spec(), FieldGuardStatus(accepted=accepted)))


class World(Announcing):
    """Stands for the writer and the recorder of Events."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self._caches = caches
        self.events: list[str] = []
        self.writes = 0
        self._guards = GuardReconciler(caches, self, self, lambda: 0.0)  # type: ignore[arg-type]

    async def save_status(self, _: object, guard: FieldGuard, status: FieldGuardStatus) -> FieldGuard:
        self.writes += 1
        metadata = msgspec.structs.replace(guard.metadata, resource_version=str(self.writes * 2))
        self._caches[WATCH].observe(msgspec.structs.replace(guard, metadata=metadata, status=status))
        return self.guard

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        self.events.append(reason)

    @property
    def guard(self) -> FieldGuard:
        found = self._caches[WATCH].get("default", "g")
        assert found is not None
        return found

    async def apply(self, wanted: FieldGuardSpec, generation: int) -> Condition:
        known = self._caches[WATCH].get("default", "g")
        status = known.status if known is not None else FieldGuardStatus()
        version = str(self.writes * 2 + 1)
        metadata = ObjectMeta("g", "default", uid="u", generation=generation, resource_version=version)
        self._caches[WATCH].observe(FieldGuard(metadata, wanted, status))
        await self._guards.reconcile(("default", "g"))
        found = find_condition(self.guard.status.conditions, ConditionType.ACCEPTED)
        assert found is not None
        return found


async def test_a_wrong_spec_leaves_the_accepted_one_in_force() -> None:
    async with governed() as caches:
        world = World(caches)
        right = spec()
        assert (await world.apply(spec("spec.containers.image"), 1)).message.endswith("; no spec is in force")
        assert (await world.apply(right, 2)).is_true
        wrong = await world.apply(spec("spec.template.spec.x"), 3)
        assert (wrong.status, wrong.reason) == ("False", "PathInvalid")
        assert "rule r: spec.template.spec.x: paths begin below spec.template" in wrong.message
        assert wrong.message.endswith("; the spec that was accepted last stays in force")
        assert (world.guard.status.accepted, world.guard.status.accepted_generation) == (right, 2)
        selective = await world.apply(spec(namespace_selector=Selector()), 4)
        assert selective.reason == "NamespaceSelectorNotAllowed"
        assert world.events == ["GuardRejected", "GuardAccepted", "GuardRejected", "GuardRejected"]
        writes = world.writes
        await world.apply(spec(namespace_selector=Selector()), 4)
        assert world.writes == writes


async def test_releases_keep_the_paths_of_guards_of_their_namespace_and_of_altershield_s() -> None:
    async with governed() as caches:
        put(caches, spec(MEMORY))
        put(caches, spec(IMAGES), namespace=SYSTEM_NAMESPACE)
        put(caches, spec("spec.hostNetwork"), namespace="other")
        put(caches, spec("spec.hostPID", FieldChange.CHANGED), name="changed")
        put(caches, None, name="new")
        assert set(kept_paths(caches, "default")) == {MEMORY, IMAGES}


class Live:
    """Stands for the reads from the API server."""

    def __init__(self, present: str = V2) -> None:
        self.known: tuple[Written, ...] = ()
        self.templates: dict[str, Any] = {}
        self.workload_ = builders.workload(present)
        self.reads = 0

    async def written(self, latest: Release) -> tuple[Written, ...]:
        return self.known

    async def workload(self, known: object) -> Any:
        self.reads += 1
        found = msgspec.structs.replace(self.workload_, template_version=self.workload_.version)
        return Found(found, workloads.template("sleep", "new"))

    async def template(self, known: object, source: SourceRef) -> Any:
        if source.name not in self.templates:
            raise ConflictError("it is gone", code=409)
        return self.templates[source.name]


class Found:
    def __init__(self, workload: object, template: object) -> None:
        self.workload, self.template = workload, template


def latest(by: str = "git", manager: str = "argocd-controller") -> Release:
    status = ChangeWorkloadStatus(status=WorkloadState.SUCCESS, source=SourceRef(name="sleep-1", uid="s"))
    found: ChangeWorkload = builders.release(V1, status)
    made = msgspec.structs.replace(found.spec, released_by=by, field_manager=manager, release_time="then")
    return msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(found, spec=made)), Release)


ANN = ReleasedBy("ann", "now", V2, "kubectl-set")
IMAGE = "spec.containers[main].image"


async def read(caches: Caches, live: Live, by: ReleasedBy | None = ANN, *releases: Release) -> tuple[Written, ...]:
    reader = WrittenReader(caches, live)  # type: ignore[arg-type]
    return await reader.read(builders.workload(V2), V2, by, releases)


async def test_nothing_is_read_without_a_guard_or_without_a_known_releaser() -> None:
    async with governed() as caches:
        live = Live()
        assert await read(caches, live) == ()
        put(caches, spec(IMAGES))
        assert await read(caches, live, None) == ()
        assert live.reads == 0
        assert await read(caches, live) == (Written("ann", "kubectl-set", "now", (IMAGES,), {IMAGE: '"new"'}),)


async def test_the_values_of_a_release_before_the_guard_are_read_from_its_template() -> None:
    async with governed() as caches:
        put(caches, spec(IMAGES))
        live = Live()
        assert [each.user for each in await read(caches, live, ANN, latest())] == ["ann"], "its template is gone"
        live.templates["sleep-1"] = workloads.template("sleep", "old")
        _, git = await read(caches, live, ANN, latest())
        assert git == Written("git", "argocd-controller", "then", (IMAGES,), {IMAGE: '"old"'})
        live.known = (msgspec.structs.replace(git, values={IMAGE: '"older"'}),)
        assert (await read(caches, live, ANN, latest()))[1].values == {IMAGE: '"older"'}, "it is known already"
        put(caches, spec(MEMORY), name="other")
        assert set((await read(caches, live, ANN, latest()))[1].paths) == {IMAGES, MEMORY}


@pytest.mark.parametrize(("manager", "left"), [("argocd-controller", ["ann"]), ("helm", ["ann", "git"])])
async def test_a_releaser_has_one_entry_and_the_newest_is_first(manager: str, left: list[str]) -> None:
    async with governed() as caches:
        put(caches, spec(IMAGES))
        live = Live()
        live.known = (Written("ann", "kubectl-set", "a"), Written("git", "argocd-controller", "b"))
        by = ReleasedBy("bot", "now", V2, manager)
        found = await read(caches, live, by, latest(""))
        assert [each.user for each in found] == ["bot", *left]


async def test_values_of_another_template_are_not_kept_as_those_of_the_release() -> None:
    async with governed() as caches:
        put(caches, spec(IMAGES))
        live = Live(present=V1)
        live.known = (Written("ann", "kubectl-set", "a"), Written("git", "argocd-controller", "b"))
        assert [each.user for each in await read(caches, live, ANN, latest(""))] == ["git"]


def test_the_cache_of_the_reconciler_does_not_keep_them() -> None:
    found = builders.release(V1)
    written = msgspec.structs.replace(found.spec, written=(Written("ann"),))
    assert projection.read(msgspec.json.encode(msgspec.structs.replace(found, spec=written))).spec.written == ()
