"""The eligible nodes of a DaemonSet, and its pods. Pure functions.

The rules are those of pkg/controller/daemon (daemon_controller.go, util/daemonset_util.go).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kube_base.resources import DAEMON_SETS
from kube_sandbox.cluster.history import REVISION_LABEL
from kube_sandbox.cluster.kinds import Node, Object, Pod, PodSpec, Toleration
from kube_sandbox.cluster.pod_control import pod_body
from kube_sandbox.cluster.scheduler import placement
from kube_sandbox.cluster.workload_kinds import DaemonSet

GENERATION = "deprecated.daemonset.template.generation"
"""Annotation of a DaemonSet: the number of its template."""
GENERATION_LABEL = "pod-template-generation"

_TOLERATED_TAINTS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""The taints that the DaemonSet controller makes every pod tolerate: daemons run on unhealthy nodes too."""
_NO_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class Eligibility(NamedTuple):
    runs: bool
    """Whether a pod should run on the node."""
    continues: bool
    """Whether an existing pod may stay on the node."""


def eligibility(ds: DaemonSet, node: Node) -> Eligibility:
    template = ds.spec.template.get("spec") or {}
    spec = msgspec.convert(template, PodSpec)
    tolerations = (*spec.tolerations, *(Toleration(key, "Exists", "", effect) for key, effect in _tolerated(template)))
    spec = replace(spec, tolerations=tolerations)
    if spec.node_name not in ("", node.metadata.name) or not placement.selected(spec, node):
        return Eligibility(False, False)
    taints = list(node.spec.taints)
    if node.spec.unschedulable:
        taints.append(placement.UNSCHEDULABLE)
    repelling = [
        taint.effect for taint in taints if taint.effect != "PreferNoSchedule" and not placement.tolerated(spec, taint)
    ]
    return Eligibility(not repelling, "NoExecute" not in repelling)


def target(pod: Pod) -> str:
    """The node that a pod was created for, even if the pod is not bound yet."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    fields = [field for term in terms for field in term.match_fields if field.key == "metadata.name"]
    return fields[0].values[0] if fields and fields[0].values else ""


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods by node, without those that have ended and are terminating. For each node, bound pods come first, then
    the oldest ones; the status counts the first pod."""
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if not (pod.ended and pod.metadata.deletion_timestamp is not None):
            found[target(pod)].append(pod)
    for group in found.values():
        group.sort(key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name))
    return dict(found)


def is_updated(ds: DaemonSet, pod: Pod, hash_: str) -> bool:
    """Whether the pod has the current template."""
    labels, generation = pod.metadata.labels, ds.metadata.annotations.get(GENERATION)
    return labels.get(REVISION_LABEL) == hash_ or (
        generation is not None and labels.get(GENERATION_LABEL) == generation
    )


def body(ds: DaemonSet, node: str, hash_: str) -> Object:
    """The pod for a node. Its node affinity allows that node only."""
    labels = {REVISION_LABEL: hash_}
    if generation := ds.metadata.annotations.get(GENERATION):
        labels[GENERATION_LABEL] = generation
    pod = pod_body(ds.spec.template, DAEMON_SETS, ds.metadata, labels, generateName=f"{ds.metadata.name}-")
    spec = pod["spec"]
    spec["affinity"] = _bound_to(node, spec.get("affinity") or {})
    own = list(spec.get("tolerations") or ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _tolerated(spec)]
    spec["tolerations"] = [*own, *(one for one in added if one not in own)]
    return pod


def _bound_to(node: str, affinity: Object) -> Object:
    """The affinity with the node as its only required term. `eligibility` has checked the required terms of the
    template."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def _tolerated(spec: Object) -> list[tuple[str, str]]:
    return [*_TOLERATED_TAINTS, *([_NO_NETWORK] if spec.get("hostNetwork") else [])]
