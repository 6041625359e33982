"""The placement of pods: the checks of kube-scheduler that the simulation has. Pure functions.

Reasons and messages are those of kube-scheduler.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from kube_sandbox import quantities
from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.kinds import (
    Node,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)

Load = dict[str, Fraction]
"""The sum of the requests of pods: `cpu`, `memory`, and `pods` for their number."""

_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


def requests(pod: Pod) -> Load:
    """The sum of the requests of a pod's containers."""
    wanted: Load = {"pods": Fraction(1)}
    for container in pod.spec.containers:
        for name in ("cpu", "memory"):
            if name in container.resources.requests:
                asked = quantities.parse(str(container.resources.requests[name]))
                wanted[name] = wanted.get(name, Fraction(0)) + asked
    return wanted


def refusals(pod: Pod, node: Node, load: Load) -> list[str]:
    """The reasons why the pod cannot run on this node, which already has `load`; empty if it can."""
    if node.spec.unschedulable and not tolerated(pod.spec, UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    if any(taint.effect != "PreferNoSchedule" for taint in untolerated(pod.spec, node)):
        return ["node(s) had untolerated taint(s)"]
    if not selected(pod.spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    missing = []
    for name, asked in requests(pod).items():
        free = quantities.parse(str(node.status.allocatable.get(name, "0"))) - load.get(name, Fraction(0))
        if asked > free:
            missing.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return missing


def choose(pod: Pod, nodes: Iterable[Node], loads: Mapping[str, Load]) -> str | None:
    """The name of the node that can run the pod and has the fewest pods; None if no node can."""
    fitting = [node.metadata.name for node in nodes if not refusals(pod, node, loads.get(node.metadata.name, {}))]
    return min(fitting, key=lambda name: (loads.get(name, {}).get("pods", 0), name), default=None)


def explanation(pod: Pod, nodes: Iterable[Node], loads: Mapping[str, Load]) -> str:
    """The message of kube-scheduler for a pod that no node can run."""
    nodes = list(nodes)
    if not nodes:
        return "no nodes available to schedule pods"
    reasons: Counter[str] = Counter()
    preemptions: Counter[str] = Counter()
    for node in nodes:
        reasons.update(refusals(pod, node, loads.get(node.metadata.name, {})))
        refused_alone = refusals(pod, node, {})  # even without other pods
        preemptions[_NOT_HELPFUL if refused_alone else _NO_VICTIMS] += 1
    none = f"0/{len(nodes)} nodes are available"
    return f"{none}: {_listed(reasons)}. no new claims to deallocate, preemption: {none}: {_listed(preemptions)}."


def _listed(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))


def selected(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity match the node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(_meets_term(term, node) for term in affinity.required.node_selector_terms)


def untolerated(spec: PodSpec, node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if not tolerated(spec, taint)]


def tolerated(spec: PodSpec, taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in spec.tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def _meets_term(term: NodeSelectorTerm, node: Node) -> bool:
    """An empty term matches nothing."""
    fields = {"metadata.name": node.metadata.name}
    return bool(term.match_expressions or term.match_fields) and (
        all(selectors.meets(one, node.metadata.labels) for one in term.match_expressions)
        and all(selectors.meets(one, fields) for one in term.match_fields)
    )
