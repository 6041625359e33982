"""What `altershield budgets NAME` reads, and what it says about kinds that it may not list."""

from altershield.budgets.numbers import counted
from altershield.views.budgets.reading import around
from altershield.workloads.meta import Owner
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from tests.support.stub_api import answer, serving
from tests.unit.altershield.budgets.builders import DEPLOYMENT, SET, budget, wire

CLONE_SET = Owner("apps.kruise.io/v1alpha1", "CloneSet", "api", "clone-set-api")


def obj(owner: Owner, replicas: int, above: Owner | None = None) -> dict[str, object]:
    references = [{"apiVersion": above.api_version, "kind": above.kind, "name": above.name, "uid": above.uid,
                   "controller": True}] if above else []  # fmt: skip
    metadata = {"name": owner.name, "namespace": "shop", "uid": owner.uid, "ownerReferences": references}
    return {"metadata": metadata, "spec": {"replicas": replicas, "selector": {}, "template": {}}}


async def test_workloads_tell_the_total_and_pods_of_a_deleted_workload_do_not_count() -> None:
    async with serving() as (api, client):
        await api.put(DEPLOYMENTS, obj(DEPLOYMENT, 3))
        await api.put(REPLICA_SETS, obj(SET, 3, DEPLOYMENT))
        await api.put(PODS, wire("web-1"))
        await api.put(PODS, wire("old-1", owner=Owner("apps/v1", "ReplicaSet", "old", "gone")))
        wanted = budget(maxUnavailable=1)
        found = await around(client, wanted)
        surroundings = found.surroundings
        numbers = counted(wanted, surroundings.pods.groups("shop"), surroundings.scales)
    assert found.problems == []
    assert (numbers.total, [each.name for each in numbers.pods.values()], numbers.unread) == (3, ["web-1"], ())


async def test_kind_that_may_not_be_listed_is_a_problem_only_if_a_pod_belongs_to_it() -> None:
    async with serving() as (api, client):
        for _ in range(2):
            api.fault(lambda request: "/clonesets" in request.path, answer(403, "Forbidden"))
        assert (await around(client, budget(maxUnavailable=1))).problems == []
        await api.put(PODS, wire("api-1", owner=CLONE_SET))
        assert (await around(client, budget(maxUnavailable=1))).problems == ["cannot list clonesets: 403 Forbidden"]
