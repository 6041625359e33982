"""Where a pod may run: the checks of a scheduler that matter here. Pure.

Reasons and messages are kube-scheduler's own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from kube_sandbox import quantities
from kube_sandbox.cluster import selectors
from kube_sandbox.cluster.views import (
    Node,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Taint,
    Toleration,
)

Load = dict[str, Fraction]
"""What pods ask for together: `cpu`, `memory`, and `pods`, their number."""

_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


def requests(pod: Pod) -> Load:
    """What a pod asks for: its containers together."""
    wanted: Load = {"pods": Fraction(1)}
    for container in pod.spec.containers:
        for name in ("cpu", "memory"):
            if name in container.resources.requests:
                asked = quantities.parse(str(container.resources.requests[name]))
                wanted[name] = wanted.get(name, Fraction(0)) + asked
    return wanted


def refusals(pod: Pod, node: Node, load: Load) -> list[str]:
    """Why the pod cannot run on this node beside the `load` that is there; empty where it can."""
    if node.spec.unschedulable and not tolerated(pod.spec, UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    if any(taint.effect != "PreferNoSchedule" for taint in untolerated(pod.spec, node)):
        return ["node(s) had untolerated taint(s)"]
    if not selected(pod.spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    missing = []
    for name, asked in requests(pod).items():
        room = quantities.parse(str(node.status.allocatable.get(name, "0"))) - load.get(name, Fraction(0))
        if asked > room:
            missing.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return missing


def choose(pod: Pod, nodes: Iterable[Node], loads: Mapping[str, Load]) -> str | None:
    """The name of the node with the fewest pods of those where the pod can run; None where it fits nowhere."""
    fitting = [node.metadata.name for node in nodes if not refusals(pod, node, loads.get(node.metadata.name, {}))]
    return min(fitting, key=lambda name: (loads.get(name, {}).get("pods", 0), name), default=None)


def explanation(pod: Pod, nodes: Iterable[Node], loads: Mapping[str, Load]) -> str:
    """Why the pod fits nowhere, in the words of kube-scheduler."""
    nodes = list(nodes)
    if not nodes:
        return "no nodes available to schedule pods"
    reasons: Counter[str] = Counter()
    preemptions: Counter[str] = Counter()
    for node in nodes:
        reasons.update(refusals(pod, node, loads.get(node.metadata.name, {})))
        hopeless = refusals(pod, node, {})  # even with nobody else there
        preemptions[_NOT_HELPFUL if hopeless else _NO_VICTIMS] += 1
    none = f"0/{len(nodes)} nodes are available"
    return f"{none}: {_listed(reasons)}. no new claims to deallocate, preemption: {none}: {_listed(preemptions)}."


def _listed(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))


def selected(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity admit the node."""
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
    """An empty term admits nothing."""
    fields = {"metadata.name": node.metadata.name}
    return bool(term.match_expressions or term.match_fields) and (
        all(selectors.meets(one, node.metadata.labels) for one in term.match_expressions)
        and all(selectors.meets(one, fields) for one in term.match_fields)
    )
