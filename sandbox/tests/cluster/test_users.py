"""The users as which the simulated controllers and kubelets write."""

import dataclasses
from pathlib import Path

import pytest

from kube_base.resources import DEPLOYMENTS, NAMESPACES, PODS, VALIDATING_WEBHOOKS
from kube_sandbox.cluster.settings import SimulationSettings
from support import hook as hooks
from support.cluster import SETTINGS, SPACE, Cluster

pytestmark = pytest.mark.parametrize("tls", [True])  # a ConfigMap, which is deleted, has the CA of the API server


async def deleters(tmp_path: Path, cluster: Cluster, settings: SimulationSettings) -> dict[tuple[str, str], set[str]]:
    """The users that delete objects when a Deployment and then its namespace are deleted, by kind and request name. An
    item of a collection has no name."""
    async with hooks.serve(tmp_path) as hook, cluster.simulation(settings):
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"]}
        webhook = {
            "name": "users.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": hook.client_config,
            "rules": [rule],
        }
        await cluster.client.create(VALIDATING_WEBHOOKS, {"metadata": {"name": "users"}, "webhooks": [webhook]})
        await cluster.release(1)
        await cluster.until_released()
        await cluster.client.patch(DEPLOYMENTS, {"spec": {"replicas": 0}}, "sleep", SPACE)
        await cluster.until_gone(PODS)
        await cluster.release(1)
        await cluster.until_released()
        await cluster.delete(DEPLOYMENTS, "sleep")
        await cluster.until_gone(PODS)
        await cluster.client.delete(NAMESPACES, SPACE)
        await cluster.until(NAMESPACES, lambda items: SPACE not in {one["metadata"]["name"] for one in items}, "")
    found: dict[tuple[str, str], set[str]] = {}
    for request in (review["request"] for review in hook.reviews):
        named = "named" if request.get("name") else "collection"
        found.setdefault((request["kind"]["kind"], named), set()).add(request["userInfo"]["username"])
    return found


async def test_controllers_and_kubelets_write_as_the_users_of_kubernetes(tmp_path: Path, api_only: Cluster) -> None:
    found = await deleters(tmp_path, api_only, SETTINGS)
    account = "system:serviceaccount:kube-system:"
    kubelets = {user for user in found["Pod", "named"] if user.startswith("system:node:sandbox-")}
    assert kubelets
    assert found["Pod", "named"] - kubelets == {
        f"{account}replicaset-controller",
        f"{account}generic-garbage-collector",
    }
    assert found["ReplicaSet", "named"] == {f"{account}generic-garbage-collector"}
    assert found["ConfigMap", "collection"] == {f"{account}namespace-controller"}
    assert found["Deployment", "named"] == {"kubernetes-admin"}


async def test_all_controllers_are_one_user_on_demand(tmp_path: Path, api_only: Cluster) -> None:
    found = await deleters(tmp_path, api_only, dataclasses.replace(SETTINGS, one_user=True))
    manager = "system:kube-controller-manager"
    assert {user for user in found["Pod", "named"] if not user.startswith("system:node:")} == {manager}
    assert found["ConfigMap", "collection"] == {manager}
