"""Owners that no cache has are read live."""

import msgspec
import pytest

from altershield.budget_caches import known_scales
from altershield.budget_caches.caches import BudgetCaches
from kube_base.resources import REPLICA_SETS
from tests.support.stub_api import serving
from tests.unit.altershield.budgets.builders import DEPLOYMENT, SET, scaled


async def test_forged_owner_reference_does_not_make_the_real_owner_of_other_pods_gone() -> None:
    """A user who creates a pod may write any kind and name beside the uid of a ReplicaSet that has pods, and may write
    its exact owner reference in another namespace."""
    other_name = msgspec.structs.replace(SET, name="other")
    other_kind = msgspec.structs.replace(DEPLOYMENT, uid=SET.uid)
    async with serving() as (api, client):
        metadata = {"name": SET.name, "namespace": "shop", "uid": SET.uid}
        await api.put(REPLICA_SETS, {"metadata": metadata, "spec": {"replicas": 2}})
        known = BudgetCaches(client, lambda namespace: True, lambda namespace: False).scales
        scales = known.of("shop")
        for owner, namespace in ((other_name, "shop"), (other_kind, "shop"), (SET, "other")):
            await known.read(owner, namespace)
            assert known.of(namespace).is_gone(owner)
            assert not scales.is_gone(SET)
            assert scales.can_read(SET)
        await known.read(SET, "shop")
        found = scales.get(SET)
        assert found is not None
        assert found.replicas == 2
        assert [scales.get(owner) for owner in (other_name, other_kind)] == [None, None]
        assert known.of("other").get(SET) is None


async def test_result_of_a_live_read_is_known_and_counts_as_a_change() -> None:
    async with serving() as (api, client):
        await api.put(REPLICA_SETS, {"metadata": {"name": SET.name, "namespace": "shop", "uid": SET.uid}})
        known = BudgetCaches(client, lambda namespace: True, lambda namespace: False).scales
        scales = known.of("shop")
        assert scales.can_read(SET)
        await known.read(SET, "shop")
        assert (scales.is_gone(SET), scales.can_read(SET)) == (False, False)
        assert (known.changes("shop"), known.changes("other")) == (1, 0)


async def test_object_with_another_uid_is_not_the_owner() -> None:
    async with serving() as (api, client):
        await api.put(REPLICA_SETS, {"metadata": {"name": SET.name, "namespace": "shop", "uid": "successor"}})
        known = BudgetCaches(client, lambda namespace: True, lambda namespace: False).scales
        await known.read(SET, "shop")
        assert known.of("shop").is_gone(SET)


async def test_only_the_last_results_of_live_reads_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_scales, "_MAX_READ", 3)
    owners = [msgspec.structs.replace(SET, name=f"web-{number}", uid=f"set-{number}") for number in range(5)]
    async with serving() as (_, client):
        known = BudgetCaches(client, lambda namespace: True, lambda namespace: False).scales
        for owner in owners:
            await known.read(owner, "shop")
        assert [known.of("shop").is_gone(owner) for owner in owners] == [False, False, True, True, True]


async def test_cached_object_of_another_kind_is_not_the_owner() -> None:
    async with serving() as (_, client):
        caches = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
        caches.namespaces.has_budget = lambda namespace: True  # type: ignore[method-assign]
        caches._scaled[REPLICA_SETS].observe(scaled(SET, 3))
        scales = caches.scales.of("shop")
        assert scales.get(SET) is not None
        assert scales.get(msgspec.structs.replace(DEPLOYMENT, uid=SET.uid)) is None
