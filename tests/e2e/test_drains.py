"""`kubectl drain` of two nodes at once: it ends with 0, and leaves no workload with fewer pods than its budgets say."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from bench.availability.observer import Budget, replay
from bench.availability.pods_watch import PodsWatch
from kube_base.access.client import Client
from tests.support import workloads
from tests.support.kubectl import Kubectl
from tests.support.polling import HANG, eventually

KUBELET = "sandbox.altershield.io/kubelet"
KINDS = {"PodUnavailableBudget": API_VERSION, "PodDisruptionBudget": "policy/v1"}
BUDGETS = [Budget(name, total=10, desired=7) for name in ("web", "api", "db")]


class Nodes:
    """Two nodes with all pods, and two that are made to take them."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.label = f"drained-{uuid.uuid4().hex[:8]}"
        self.full = [f"{self.label}-1", f"{self.label}-2"]
        self._empty = [f"{self.label}-3", f"{self.label}-4"]

    def fill(self) -> None:
        self._create(self.full)
        for each in BUDGETS:
            made = workloads.manifest("Deployment", each.name, "busybox", replicas=each.total)
            made["spec"]["template"]["spec"] |= {
                "nodeSelector": {"drained": self.label},
                "tolerations": [{"key": "drained", "operator": "Exists"}],
            }
            self._kubectl.apply(json.dumps(made))
        eventually(self.all_ready, "all pods to be ready")
        assert set(self.used()) == set(self.full)
        self._create(self._empty)

    def _create(self, names: list[str]) -> None:
        for name in names:
            metadata = {"name": name, "labels": {"drained": self.label}, "annotations": {KUBELET: "up"}}
            spec = {"taints": [{"key": "drained", "effect": "NoSchedule"}]}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}
            self._kubectl("create", "-f", "-", stdin=json.dumps(node))
        for name in names:
            self._kubectl.wait(f"node/{name}", "condition=Ready")

    def all_ready(self) -> bool:
        found = self._kubectl.json("deployments")["items"]
        ready = {each["metadata"]["name"]: each.get("status", {}).get("readyReplicas", 0) for each in found}
        return ready == {each.name: each.total for each in BUDGETS}

    def used(self) -> list[str]:
        """The node of each pod that is not being deleted."""
        pods: list[dict[str, Any]] = self._kubectl.json("pods")["items"]
        return [pod["spec"]["nodeName"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def delete(self) -> None:
        self._kubectl.delete_namespaces()
        self._kubectl.run("delete", "node", "--ignore-not-found", "--wait=false", *self.full, *self._empty)


@pytest.fixture
def nodes(kubectl: Kubectl) -> Iterator[Nodes]:
    nodes = Nodes(kubectl)
    yield nodes
    nodes.delete()


@pytest.mark.parametrize(
    "kinds",
    [["PodUnavailableBudget"], ["PodDisruptionBudget"], ["PodUnavailableBudget", "PodDisruptionBudget"]],
    ids="+".join,
)
async def test_drains_of_two_nodes_end_and_keep_to_the_budgets(
    kubectl: Kubectl, client: Client, nodes: Nodes, kinds: list[str]
) -> None:
    async with PodsWatch.following(client, kubectl.namespace) as watch:
        await asyncio.to_thread(nodes.fill)
        for kind in kinds:
            await asyncio.to_thread(create_budgets, kubectl, kind)

        drains = await asyncio.gather(*(asyncio.to_thread(kubectl.run, "drain", node) for node in nodes.full))

        assert [drain.returncode for drain in drains] == [0, 0], [drain.stderr for drain in drains]
        await asyncio.to_thread(eventually, nodes.all_ready, "all pods to be ready again")
        assert not set(nodes.used()) & set(nodes.full)
        assert any(text in drain.stderr for drain in drains for text in ("PodUnavailableBudget", "disruption budget"))
        await watch.until_now()
    everything = {event.pod["metadata"]["uid"] for event in watch.events}
    found = replay(watch.events, BUDGETS, everything)
    assert found.overdrafts == ()
    assert found.disrupted == sum(each.total for each in BUDGETS), "each pod is evicted once"


def create_budgets(kubectl: Kubectl, kind: str) -> None:
    for each in BUDGETS:
        spec = {"selector": {"matchLabels": {"app": each.name}}, "maxUnavailable": each.total - each.desired}
        obj = {"apiVersion": KINDS[kind], "kind": kind, "metadata": {"name": each.name}, "spec": spec}
        kubectl.apply(json.dumps(obj))
    if kind == "PodDisruptionBudget":
        kubectl("wait", "pdb", "--all", "--for=jsonpath={.status.disruptionsAllowed}=3", f"--timeout={HANG:.0f}s")
