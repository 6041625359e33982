"""The pods of a DaemonSet that a release in steps holds."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import SourceRef
from altershield.api.labels import CONTROLLER_REVISION_HASH
from altershield.api.rollout import Rollout, Step
from altershield.workloads.hold import STEPS, Cause, Hold
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing
from reconciler.rollout.node_sets import NodeSet
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import V1
from tests.unit.altershield.workloads import objects

LABELS = {f"node-{number}": {"pool": "canary"} if number in (2, 3) else {} for number in range(5)}
NODES: Any = SimpleNamespace(
    node_ready=lambda node: True, node_lost=lambda node: False, node_ready_at=lambda node: 0.0,
    node_labels=lambda: LABELS,
)  # fmt: skip


def groups(*, held: bool) -> PodGroups:
    """Three nodes should have a pod, and have one of the version. A fourth one keeps its old pod."""
    own: dict[str, Any] = {"fields": {"/spec/updateStrategy/type": "RollingUpdate"}}
    hold = Hold("new", (Cause(STEPS, pods=3),), rollout=Rollout(pods=(3,)), replicas=3, **own)
    workload = objects.workload(
        "DaemonSet",
        metadata={"annotations": {ROLLOUT: msgspec.json.encode(hold).decode()} if held else {}},
        status={"desiredNumberScheduled": 3},
        updateStrategy={"type": "OnDelete" if held else "RollingUpdate"},
    )
    made = PodGroups(
        workload, builders.release(V1), SourceRef("ControllerRevision", "web-new", "uid"), NODES, Timing(1, 1)
    )
    for number, of in enumerate(("new", "new", "new", "old")):
        made.update_pod(
            objects.pod(
                name=f"web-{number}", uid=str(number), labels={CONTROLLER_REVISION_HASH: of},
                spec={"nodeName": f"node-{number}"},
            ),
            builders.NOW,
        )  # fmt: skip
    made.refresh(workload, builders.NOW)
    return made


@pytest.mark.parametrize("held", [True, False])
def test_pod_that_stays_on_an_unsuitable_node_is_no_scaling_down_of_a_held_daemonset(held: bool) -> None:
    found = groups(held=held)
    assert (len(found), len(found.older)) == (3, 1)
    assert found.scales_down is not held


def test_nodes_of_a_step_are_those_with_its_labels_and_a_pod() -> None:
    (found,) = groups(held=True).node_sets([Step(node_selector={"pool": "canary"})])
    assert found == NodeSet(frozenset({"node-2", "node-3"}), pods=2, updated=1, own=2)
