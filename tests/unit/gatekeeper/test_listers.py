"""Listers over the caches."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import WorkloadRef
from altershield.workloads import ADAPTERS, Adapter, change_workload_name
from gatekeeper.listers import CacheListers, caches
from gatekeeper.live import LiveReads
from gatekeeper.projection import read
from kube_base.access.client import Client
from tests.support.stub_api import serving
from tests.unit.altershield.gates.placed import recent_admissions

from .reviews import NEW, OLD, RECONCILER, NoBudgets, NoFlowControls, StaticGates, StaticOverrides, StaticPolicies

ROLLED_BACK = {"type": "RolledBack", "status": "True", "reason": "R", "message": "it broke"}


def ref(adapter: Adapter, uid: str = "u") -> WorkloadRef:
    return WorkloadRef(adapter.resource.api_version, adapter.resource.kind, "web", uid)


def release(adapter: Adapter, version: str, *, owned: bool = True, **status: Any) -> dict[str, Any]:
    name = change_workload_name(adapter.resource.group_kind, "web", version)
    workload = msgspec.to_builtins(ref(adapter))
    owners = [{**workload, "controller": True}] if owned else []
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "resourceVersion": "1",
            "labels": {"a": "b"},
            "annotations": {"a": "b" * 10_000},
            "ownerReferences": owners,
        },
        "spec": {"workloadRef": workload, "changeWorkloadId": name, "createTimeUnix": 1},
        "status": {"defenseCheckPassPods": [{"pod": "web-1"}], **status},
    }


async def cache_listers(client: Client, *releases: dict[str, Any]) -> CacheListers:
    found, settings = caches(client, "system")
    made = CacheListers(
        found,
        settings,
        live=LiveReads(client),
        budgets=NoBudgets(),
        flow_controls=NoFlowControls(),
        policies=StaticPolicies(),
        gates=StaticGates(),
        admissions=recent_admissions(StaticGates()),
        overrides=StaticOverrides(),
        reconciler=RECONCILER,
        system_namespace="system",
    )
    for each in releases:
        found.observe(found.read(msgspec.json.encode(each)))
    return made


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.resource.plural)
async def test_listers_find_changeworkloads_by_the_uid_of_the_workload(adapter: Adapter) -> None:
    everything = [release(each, version) for each in ADAPTERS for version in (OLD, NEW)]
    everything += [release(each, "0" * 32, conditions=[ROLLED_BACK]) for each in ADAPTERS]
    async with serving() as (_, client):
        found = await cache_listers(client, *everything)
        ours = found.release("shop", ref(adapter), NEW)
        assert ours is not None
        assert ours.spec.workload_ref == ref(adapter)
        assert found.release("shop", ref(adapter, "another"), NEW) is None
        assert found.release("other", ref(adapter), NEW) is None
        (rolled_back,) = found.rolled_back("shop", ref(adapter))
        assert rolled_back.spec.workload_ref.kind == adapter.resource.kind
        assert found.rolled_back("shop", ref(adapter, "another")) == []
        assert found.rolled_back("other", ref(adapter)) == []
        assert found.orphaned("shop", ref(adapter)) == []


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.resource.plural)
async def test_orphaned_lists_the_changeworkloads_of_a_deleted_workload(adapter: Adapter) -> None:
    async with serving() as (_, client):
        left = [release(each, OLD, owned=False, status="Suspend") for each in ADAPTERS]
        found = await cache_listers(client, *left, release(adapter, NEW))
        (orphan,) = found.orphaned("shop", ref(adapter, ""))
        assert orphan.metadata.name == change_workload_name(adapter.resource.group_kind, "web", OLD)


def test_what_releases_wrote_is_kept_compressed() -> None:
    paths = tuple(
        f"spec.containers[*].resources.{kind}.{each}" for kind in ("limits", "requests") for each in ("cpu", "memory")
    )
    values = {path.replace("*", name): '"250m"' for path in paths for name in ("app", "proxy")}
    written = [
        {
            "user": f"system:serviceaccount:argocd:{each}",
            "manager": each,
            "time": "2026-11-28T10:00:00Z",
            "paths": paths,
            "values": values,
        }
        for each in ("argocd", "helm", "kubectl-set", "kubectl-edit")
    ]
    whole = release(ADAPTERS[0], OLD)
    whole["spec"]["written"] = written
    kept = read(msgspec.json.encode(whole))
    assert [each.manager for each in kept.written] == ["argocd", "helm", "kubectl-set", "kubectl-edit"]
    assert kept.written[0].values == values
    assert len(kept.packed) < 300 < 3000 < len(msgspec.json.encode(written))
    assert not kept.spec.written
    assert read(msgspec.json.encode(release(ADAPTERS[0], OLD))).written == ()


def test_projection_of_a_changeworkload_is_small() -> None:
    whole = release(ADAPTERS[0], OLD, source={"kind": "K", "name": "web-1", "fingerprint": NEW, "version": OLD})
    kept = read(msgspec.json.encode(whole))
    assert len(msgspec.json.encode(kept)) < 600
    assert kept.metadata.labels == kept.metadata.annotations == {}
    assert kept.status.source.fingerprint == NEW
    same = release(ADAPTERS[0], OLD, source={"kind": "K", "name": "web-1", "fingerprint": OLD})
    assert read(msgspec.json.encode(same)).status.source.fingerprint == "", "the name contains the fingerprint"
