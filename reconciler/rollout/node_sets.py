"""The pods on the nodes that the steps of a release select. Pure functions."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from altershield.api.rollout import Step
from altershield.workloads.pods import Pod


@dataclass(frozen=True, slots=True)
class NodeSet:
    """The nodes that a step and the steps before it select.

    A node counts if it has a pod of the version, or an old one and is ready, or lacks a pod that it should have.
    """

    names: Collection[str] = ()
    """All of them."""
    pods: int = 0
    """How many of them count."""
    updated: int = 0
    """How many of them have a pod of the version."""
    own: int = 0
    """How many of the nodes that this step itself selects count."""


NO_NODES = NodeSet()


def node_sets(
    steps: Iterable[Step],
    replicas: int,
    *,
    updated: Iterable[Pod],
    older: Iterable[Pod],
    nodes: Mapping[str, Mapping[str, str]],
    on_ready_node: Callable[[Pod], bool],
) -> tuple[NodeSet, ...]:
    """The nodes of each step. `nodes`: the labels of all nodes, by name. `replicas`: on how many nodes the workload
    should have a pod.

    It is not known on which nodes a pod is missing, or is not scheduled yet. A selected node without one may be one of
    them.
    """
    new = {pod.node for pod in updated if pod.node}
    old = {pod.node: on_ready_node(pod) for pod in older if pod.node and pod.node not in new}
    ready = new | {name for name, is_ready in old.items() if is_ready}
    missing = max(0, replicas - len(new) - len(old))

    def count(names: set[str]) -> int:
        return len(names & ready) + min(missing, len(names - new - old.keys()))

    found: list[NodeSet] = []
    names: set[str] = set()
    for step in steps:
        own = _selected(step, nodes) if step.node_selector else set()
        names = names | own
        found.append(NodeSet(frozenset(names), count(names), len(names & new), count(own)))
    return tuple(found)


def _selected(step: Step, nodes: Mapping[str, Mapping[str, str]]) -> set[str]:
    required = step.node_selector.items()
    return {name for name, labels in nodes.items() if required <= labels.items()}
