"""A kind of another API group with the name of a kind that AlterShield handles already, as OpenKruise has them."""

import sys
from typing import Any

import msgspec
import pytest

from altershield import releases, workloads
from altershield.api.change_workload import WorkloadRef
from altershield.releases.history import entry_name
from altershield.views.releases.model import Snapshot, StoredRelease, shown
from altershield.views.selection import Selection, parse
from altershield.workloads import ADAPTERS, BY_KIND, Adapter, change_workload_name, named_kind
from altershield.workloads.stateful_sets import StatefulSets
from altershield.workloads.workload import Workload
from kube_base.access.queue import WorkQueue
from kube_base.meta import OwnerReference
from kube_base.resources import STATEFUL_SETS, GroupKind, Resource
from reconciler.cluster.ownership import WorkloadKey, is_controlled_by, is_workload, workload_key
from reconciler.cluster.release import Release
from reconciler.machinery.runner import _Controller
from reconciler.releases.writes.creation import _reference
from tests.unit.altershield.releases.builders import V1
from tests.unit.altershield.workloads import objects
from tests.unit.reconciler.filled import empty_caches, namespace, pod, put, release

ADVANCED = Resource("apps.kruise.io", "v1beta1", "statefulsets", "StatefulSet")
BUILT_IN_KIND, ADVANCED_KIND = STATEFUL_SETS.group_kind, ADVANCED.group_kind


class AdvancedStatefulSets(StatefulSets):
    resource: Resource = ADVANCED
    short_names: tuple[str, ...] = ("asts",)
    crd: str = "statefulsets.apps.kruise.io"
    change_workload_prefix: str = "advanced-statefulset."


@pytest.fixture(autouse=True)
def advanced(monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """The adapter of the second kind, registered behind the others."""
    made = AdvancedStatefulSets()
    registered = (*ADAPTERS, made)
    for module in [each for each in list(sys.modules.values()) if vars(each).get("ADAPTERS") is ADAPTERS]:
        monkeypatch.setattr(module, "ADAPTERS", registered)
    monkeypatch.setitem(BY_KIND, ADVANCED_KIND, made)
    monkeypatch.setattr(workloads, "_PREFIXES", tuple(each.change_workload_prefix for each in registered))
    return made


def _workload(resource: Resource, uid: str) -> Workload:
    """The StatefulSet `sleep` of this group."""
    made = objects.manifest("StatefulSet", metadata={"name": "sleep", "namespace": "default", "uid": uid})
    return BY_KIND[resource.group_kind].read(msgspec.json.encode({**made, "apiVersion": resource.api_version}))


BUILT_IN_OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "sleep", "uid": "built-in"}
ADVANCED_OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "sleep", "uid": "advanced"}
BUILT_IN_KEY = WorkloadKey(BUILT_IN_KIND, "default", "sleep")
ADVANCED_KEY = WorkloadKey(ADVANCED_KIND, "default", "sleep")


def _both() -> tuple[Workload, Workload]:
    return _workload(STATEFUL_SETS, "built-in"), _workload(ADVANCED, "advanced")


def _release(workload: Workload) -> Release:
    """The ChangeWorkload of the workload, as the reconciler creates it."""
    reference, metadata = _reference(workload), workload.metadata
    made, name = release(), change_workload_name(workload.group_kind, metadata.name, V1)
    owner = OwnerReference(reference.kind, reference.name, reference.uid, reference.api_version, controller=True)
    return msgspec.structs.replace(
        made,
        metadata=msgspec.structs.replace(made.metadata, name=name, uid=f"of-{metadata.uid}", owner_references=(owner,)),
        spec=msgspec.structs.replace(made.spec, workload_ref=reference),
    )


def test_workloads_have_the_kind_of_their_group() -> None:
    built_in, second = _both()
    assert (built_in.group_kind, second.group_kind) == (BUILT_IN_KIND, ADVANCED_KIND)
    assert built_in.kind == second.kind == "StatefulSet"
    assert _reference(second) == WorkloadRef("apps.kruise.io/v1beta1", "StatefulSet", "sleep", "advanced")


def test_references_without_an_api_version_name_the_first_kind() -> None:
    assert named_kind(WorkloadRef(kind="StatefulSet")) == BUILT_IN_KIND
    assert named_kind(WorkloadRef("apps/v1", "StatefulSet")) == BUILT_IN_KIND
    assert named_kind(WorkloadRef("apps.kruise.io/v1alpha1", "StatefulSet")) == ADVANCED_KIND
    assert named_kind(OwnerReference("CloneSet", "sleep", "uid")) == GroupKind("apps.kruise.io", "CloneSet")
    assert named_kind(WorkloadRef(kind="Job")) == GroupKind("", "Job")


async def test_logs_name_the_kind_without_its_group() -> None:
    async def reconcile(key: WorkloadKey) -> None:
        return None

    fields = _Controller("releases", WorkQueue(), reconcile)._log_fields(ADVANCED_KEY, ValueError("no"))
    assert fields == {"controller": "releases", "namespace": "default", "object": "StatefulSet/sleep", "cause": "no"}


def test_names_of_change_workloads_and_of_the_history_differ() -> None:
    assert change_workload_name(BUILT_IN_KIND, "sleep", V1) == f"statefulset.sleep--x--{V1}"
    assert change_workload_name(ADVANCED_KIND, "sleep", V1) == f"advanced-statefulset.sleep--x--{V1}"
    assert entry_name(BUILT_IN_KIND, "sleep", V1) != entry_name(ADVANCED_KIND, "sleep", V1)


async def test_caches_keep_both_workloads() -> None:
    built_in, second = _both()
    async with empty_caches() as caches:
        put(caches, namespace(), built_in, second)
        assert caches.workload(BUILT_IN_KEY) == built_in
        assert caches.workload(ADVANCED_KEY) == second
        assert list(caches.workloads_in("default")) == [built_in, second]
        assert caches.workload(WorkloadKey(GroupKind("example.com", "StatefulSet"), "default", "sleep")) is None


async def test_pods_belong_to_the_workload_of_their_owner() -> None:
    built_in, second = _both()
    async with empty_caches() as caches:
        put(caches, namespace(), built_in, second)
        first, other = pod(name="sleep-0", owner=BUILT_IN_OWNER), pod(name="sleep-1", owner=ADVANCED_OWNER)
        stranger = pod(name="sleep-2", owner={**ADVANCED_OWNER, "apiVersion": "example.com/v1"})
        put(caches, first, other, stranger)
        assert [is_workload(each.owner) for each in (first, other, stranger)] == [True, True, False]
        assert caches.workload_of(first) == BUILT_IN_KEY
        assert caches.workload_of(other) == ADVANCED_KEY
        assert list(caches.pods_of(built_in)) == [first]
        assert list(caches.pods_of(second)) == [other]
        assert len(caches.pods) == 2


async def test_only_the_second_kind_needs_a_definition() -> None:
    async with empty_caches() as caches:
        assert (caches.defined(BUILT_IN_KIND), caches.defined(ADVANCED_KIND)) == (True, False)
        informer = caches.workloads[ADVANCED_KIND]
        assert informer not in caches.required
        assert caches.workloads[BUILT_IN_KIND] in caches.required
        definition = caches.definitions[ADVANCED_KIND]
        definition.observe(
            definition.read(b'{"metadata": {"name": "statefulsets.apps.kruise.io", "resourceVersion": "1"}}')
        )
        assert caches.defined(ADVANCED_KIND)
        assert caches.budgets._definitions[ADVANCED] is definition
        assert STATEFUL_SETS not in caches.budgets._definitions


async def test_change_workloads_belong_to_one_of_both() -> None:
    built_in, second = _both()
    first, other = _release(built_in), _release(second)
    assert [workload_key(each) for each in (first, other)] == [BUILT_IN_KEY, ADVANCED_KEY]
    assert [is_controlled_by(first, each) for each in (built_in, second)] == [True, False]
    assert [is_controlled_by(other, each) for each in (built_in, second)] == [False, True]
    async with empty_caches() as caches:
        put(caches, namespace(), first, other)
        assert caches.releases_of(built_in) == [first]
        assert caches.releases_of(second) == [other]


def test_orphaned_change_workloads_belong_to_the_next_workload_of_the_same_group() -> None:
    built_in, second = _both()
    orphan = _release(second)
    orphan = msgspec.structs.replace(orphan, metadata=msgspec.structs.replace(orphan.metadata, owner_references=()))
    next_ones = [msgspec.structs.replace(_reference(each), uid="next") for each in (built_in, second)]
    assert [releases.belongs(orphan, each) for each in next_ones] == [False, True]
    keys = [releases.workload_index_key("default", each) for each in next_ones]
    assert [releases.release_index_key(orphan) == key for key in keys] == [False, True]


def test_releases_of_both_are_shown() -> None:
    built_in, second = _both()
    own = [msgspec.structs.replace(each, version=V1) for each in (built_in, second)]
    kept = [StoredRelease(_release(each), b"") for each in own]
    found = [each for each in shown(Snapshot(list(reversed(own)), kept)) if each.stored is not None]
    assert [(each.workload, each.stored) for each in found] == list(zip(own, kept, strict=True))


def test_the_qualified_word_names_the_second_kind(advanced: Any) -> None:
    assert parse(["statefulset/sleep"]) == [Selection((BY_KIND[BUILT_IN_KIND],), "sleep")]
    assert parse(["statefulsets.apps.kruise.io/sleep"]) == [Selection((advanced,), "sleep")]
