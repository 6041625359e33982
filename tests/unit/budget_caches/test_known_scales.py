"""Owners that no cache has are read live."""

import msgspec

from altershield.api.resources import REPLICA_SETS
from altershield.budget_caches.caches import BudgetCaches
from tests.support.stub_api import serving
from tests.unit.budgets.builders import DEPLOYMENT, SET


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
