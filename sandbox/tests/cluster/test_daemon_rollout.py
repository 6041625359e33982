"""The steps and the status of a DaemonSet."""

import pytest

from kube_sandbox.cluster.daemon_sets import pods as daemon_pods
from kube_sandbox.cluster.daemon_sets import rollout
from kube_sandbox.cluster.kinds import Node, Pod
from kube_sandbox.cluster.workload_kinds import DaemonSet
from support.objects import T0, node, template
from support.workloads import daemon_set, nodes, replica

NOW = T0 + 60
THREE = nodes("a", "b", "c")


def on(node: str, hash_: str = "old", *, up: bool = True, **more: str) -> Pod:
    return replica(f"agent-{node}-{hash_}", hash_, node=node, up=up, **more)


def manage(ds: DaemonSet, there: list[Node], *pods: Pod) -> tuple[list[str], list[str]]:
    return _shown(rollout.manage(ds, there, daemon_pods.by_node(pods), "new", NOW))


def update(ds: DaemonSet, *pods: Pod, there: list[Node] = THREE) -> tuple[list[str], list[str]]:
    return _shown(rollout.update(ds, there, daemon_pods.by_node(pods), "new", NOW))


def _shown(plan: rollout.Plan) -> tuple[list[str], list[str]]:
    return plan.create, [pod.metadata.name for pod in plan.delete]


def test_each_node_gets_one_pod() -> None:
    assert manage(daemon_set(), THREE) == (["a", "b", "c"], [])
    assert manage(daemon_set(), THREE, on("a"), on("c")) == (["b"], [])
    assert manage(daemon_set(), THREE, on("a"), on("a", "new"), on("b"), on("c")) == ([], ["agent-a-old"])


def test_pod_on_a_node_that_no_longer_matches_is_deleted() -> None:
    template_ = template()
    template_["spec"]["nodeSelector"] = {"disk": "fast"}
    there = [node("a", labels={"disk": "fast"}), node("b")]
    assert manage(daemon_set(template=template_), there, on("b")) == (["a"], ["agent-b-old"])


@pytest.mark.parametrize(
    ("taint", "runs", "continues"),
    [
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, True, True),
        ({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}, True, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, True, True),
        ({"key": "mine", "effect": "PreferNoSchedule"}, True, True),
        ({"key": "mine", "effect": "NoSchedule"}, False, True),
        ({"key": "mine", "effect": "NoExecute"}, False, False),
    ],
)
def test_taint_decides_whether_a_pod_is_created_or_stays_on_a_node(
    taint: dict[str, str], runs: bool, continues: bool
) -> None:
    assert daemon_pods.eligibility(daemon_set(), node(taints=[taint])) == (runs, continues)


def test_pod_is_bound_to_its_node_by_affinity() -> None:
    made = daemon_pods.body(daemon_set(), "b", "123")
    assert made["metadata"]["labels"] == {"app": "sleep", "controller-revision-hash": "123"}
    (term,) = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["b"]}]
    assert {one["key"] for one in made["spec"]["tolerations"]} >= {"node.kubernetes.io/not-ready"}


def test_update_deletes_old_pods_up_to_max_unavailable() -> None:
    old = [on("a"), on("b"), on("c")]
    assert update(daemon_set(unavailable=1), *old) == ([], ["agent-a-old"])
    assert update(daemon_set(unavailable="50%"), *old) == ([], ["agent-a-old", "agent-b-old"])
    assert update(daemon_set(unavailable=1), on("a", "new", up=False), on("b"), on("c")) == ([], [])
    assert update(daemon_set(unavailable=1), on("a", "new"), on("b"), on("c")) == ([], ["agent-b-old"])


def test_unavailable_old_pods_are_deleted_at_once() -> None:
    assert update(daemon_set(), on("a"), on("b", up=False), on("c", up=False)) == (
        [],
        ["agent-b-old", "agent-c-old"],
    )


def test_new_pod_counts_as_available_after_min_ready_seconds() -> None:
    ds = daemon_set(minReadySeconds=90)
    fresh = on("a", "new", ready_since="2026-01-01T00:00:30Z")
    assert update(ds, fresh, on("b", ready_since="2025-12-31T00:00:00Z"), on("c")) == ([], ["agent-c-old"])


def test_max_surge_creates_the_new_pod_before_the_old_one_is_deleted() -> None:
    ds = daemon_set(unavailable=0, surge=1)
    assert update(ds, on("a"), on("b"), on("c")) == (["a"], [])
    assert update(ds, on("a"), on("a", "new", up=False), on("b"), on("c")) == ([], [])
    assert update(ds, on("a"), on("a", "new"), on("b"), on("c")) == (["b"], ["agent-a-old"])
    assert manage(ds, THREE, on("a"), on("a", "new"), on("b"), on("c")) == ([], ["agent-a-old"])


@pytest.mark.parametrize("surge", [0, 1])
def test_ended_pod_is_deleted(surge: int) -> None:
    ended = on("a", up=False, phase="Failed")
    created, deleted = manage(daemon_set(surge=surge, unavailable=1 - surge), THREE, ended, on("b"), on("c"))
    assert (created, deleted) == (["a"] if surge else [], ["agent-a-old"])


def test_strategy_on_delete_updates_no_pod() -> None:
    ds = daemon_set(updateStrategy={"type": "OnDelete"})
    assert update(ds, on("a"), on("b"), on("c")) == ([], [])


def test_status_counts_nodes() -> None:
    there = [*THREE, node("d", taints=[{"key": "mine", "effect": "NoSchedule"}])]
    placed = daemon_pods.by_node([on("a", "new"), on("b", up=False), on("d")])
    status = rollout.status(daemon_set(), there, placed, "new", 0, NOW)
    assert (status.desired_number_scheduled, status.current_number_scheduled) == (3, 2)
    assert (status.number_misscheduled, status.updated_number_scheduled) == (1, 1)
    assert (status.number_ready, status.number_available, status.number_unavailable) == (1, 1, 2)
