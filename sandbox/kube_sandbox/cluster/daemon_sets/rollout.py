"""The next step of a DaemonSet, and its status. Pure functions.

The rules are those of pkg/controller/daemon. `manage` keeps one pod on each eligible node. `update` replaces pods of
former templates within maxUnavailable or maxSurge.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kube_sandbox.cluster import availability
from kube_sandbox.cluster.daemon_sets import pods as daemon_pods
from kube_sandbox.cluster.daemon_sets.pods import Eligibility
from kube_sandbox.cluster.history import REVISION_LABEL
from kube_sandbox.cluster.kinds import Node, Pod
from kube_sandbox.cluster.shares import share
from kube_sandbox.cluster.workload_kinds import DaemonSet, DaemonSetStatus

Placed = Mapping[str, Sequence[Pod]]
"""The pods by node, as `pods.by_node` returns them."""


class Plan(NamedTuple):
    create: list[str]
    """The names of the nodes that get a pod."""
    delete: list[Pod]


class _Pair(NamedTuple):
    """The new and the old pod of a node. If a node has several of either, `orderly` is False and both are None."""

    new: Pod | None
    old: Pod | None
    orderly: bool = True


def manage(ds: DaemonSet, nodes: Sequence[Node], placed: Placed, hash_: str, now: float) -> Plan:
    """The step that leads to one pod on each eligible node and none elsewhere."""
    plan = Plan([], [])
    for node in nodes:
        name = node.metadata.name
        wanted = daemon_pods.eligibility(ds, node)
        if wanted.continues and name in placed:
            _manage_node(ds, name, placed[name], wanted, hash_, now, plan)
        elif wanted.runs:
            plan.create.append(name)
        else:
            plan.delete.extend(pod for pod in placed.get(name, ()) if not _is_terminating(pod))
    names = {node.metadata.name for node in nodes}
    plan.delete.extend(  # pods for deleted nodes that were never bound: no other controller deletes them
        pod
        for name, pods in placed.items()
        for pod in pods
        if name not in names and not pod.spec.node_name and not _is_terminating(pod)
    )
    return plan


def update(ds: DaemonSet, nodes: Sequence[Node], placed: Placed, hash_: str, now: float) -> Plan:
    """The next step of a rolling update."""
    if ds.spec.update_strategy.type != "RollingUpdate":
        return Plan([], [])
    eligible = {node.metadata.name: daemon_pods.eligibility(ds, node) for node in nodes}
    desired = sum(one.runs for one in eligible.values())
    surge, unavailable = _bounds(ds, desired)
    pairs = {name: _pair(ds, pods, hash_) for name, pods in sorted(placed.items())}
    for name, one in sorted(eligible.items()):
        if one.runs:
            pairs.setdefault(name, _Pair(None, None))
    if surge:
        return _surging(ds, pairs, eligible, surge, desired, now)
    return Plan([], _replacing(ds, pairs, unavailable, now))


def status(
    ds: DaemonSet, nodes: Sequence[Node], placed: Placed, hash_: str, collisions: int, now: float
) -> DaemonSetStatus:
    desired = current = misscheduled = ready = available = updated = 0
    for node in nodes:
        pods = placed.get(node.metadata.name, ())
        if not daemon_pods.eligibility(ds, node).runs:
            misscheduled += bool(pods)
            continue
        desired += 1
        if pods:
            current += 1
            ready += pods[0].ready_since is not None
            available += _available(ds, pods[0], now)
            updated += daemon_pods.is_updated(ds, pods[0], hash_)
    return DaemonSetStatus(
        observed_generation=ds.metadata.generation,
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        desired_number_scheduled=desired,
        number_ready=ready,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
        collision_count=collisions or None,
    )


def failed(pods: Sequence[Pod]) -> list[Pod]:
    """The pods that have ended, which are replaced."""
    return [pod for pod in pods if pod.ended]


def _manage_node(
    ds: DaemonSet, node: str, pods: Sequence[Pod], wanted: Eligibility, hash_: str, now: float, plan: Plan
) -> None:
    """Add the step for a node with pods: delete ended and surplus pods, and with maxSurge create a missing pod."""
    staying = [pod for pod in pods if not _is_terminating(pod)]
    plan.delete.extend(failed(staying))
    running = [pod for pod in staying if not pod.ended]
    if not _may_surge(ds):
        plan.delete.extend(running[1:])
        return
    if not running and wanted.runs:
        plan.create.append(node)
    new = [pod for pod in running if _hash(pod) == hash_]
    old = [pod for pod in running if _hash(pod) != hash_]
    plan.delete.extend([*new[1:], *old[1:]])
    if new and old and (old[0].ready_since is None or _available(ds, new[0], now)):
        plan.delete.append(old[0])


def _replacing(ds: DaemonSet, pairs: Mapping[str, _Pair], most: int, now: float) -> list[Pod]:
    """The old pods to replace: all unavailable ones, and others within maxUnavailable."""
    unavailable = 0
    broken: list[Pod] = []
    candidates: list[Pod] = []
    for pair in pairs.values():
        if not pair.orderly or (pair.old is None) == (pair.new is None):
            unavailable += 1  # `manage` changes this node
        elif pair.new is not None:
            unavailable += not _available(ds, pair.new, now)
        elif pair.old is not None and not _available(ds, pair.old, now):
            broken.append(pair.old)
            unavailable += 1
        elif pair.old is not None and unavailable < most:
            candidates.append(pair.old)
    return [*broken, *candidates[: max(0, most - unavailable)]]


def _surging(
    ds: DaemonSet,
    pairs: Mapping[str, _Pair],
    eligible: Mapping[str, Eligibility],
    most: int,
    desired: int,
    now: float,
) -> Plan:
    """The step of an update with maxSurge: create new pods, and delete an old pod when its new pod is available."""
    plan = Plan([], [])
    candidates: list[str] = []
    ineligible: list[Pod] = []
    surging = available = 0
    for name, (new, old, orderly) in pairs.items():
        if not orderly:
            surging += 1
            continue
        first = old or new
        available += first is not None and _available(ds, first, now)
        runs = eligible.get(name, Eligibility(False, False)).runs
        if old is None:
            continue
        if new is not None:
            if _available(ds, new, now):
                plan.delete.append(old)
            else:
                surging += 1
        elif not _available(ds, old, now):
            if runs:
                plan.create.append(name)
            else:
                plan.delete.append(old)
        elif not runs:
            ineligible.append(old)
        elif surging < most:
            candidates.append(name)
    plan.delete.extend(ineligible[: max(0, available - desired)])
    plan.create.extend(candidates[: max(0, most - surging)])
    return plan


def _pair(ds: DaemonSet, pods: Sequence[Pod], hash_: str) -> _Pair:
    staying = [pod for pod in pods if not _is_terminating(pod)]
    new = [pod for pod in staying if daemon_pods.is_updated(ds, pod, hash_)]
    old = [pod for pod in staying if not daemon_pods.is_updated(ds, pod, hash_)]
    if len(new) > 1 or len(old) > 1:
        return _Pair(None, None, orderly=False)
    return _Pair(new[0] if new else None, old[0] if old else None)


def _bounds(ds: DaemonSet, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable in pods; percentages are rounded up. If both are 0, one pod may be unavailable."""
    rolling = ds.spec.update_strategy.rolling_update
    if rolling is None:
        return 0, 1
    surge = share(rolling.max_surge, desired, round_up=True)
    unavailable = share(rolling.max_unavailable, desired, round_up=True)
    return surge, max(unavailable, 0 if surge else 1)


def _may_surge(ds: DaemonSet) -> bool:
    rolling = ds.spec.update_strategy.rolling_update
    is_rolling = ds.spec.update_strategy.type == "RollingUpdate"
    return is_rolling and rolling is not None and rolling.max_surge not in (0, "0%")


def _hash(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def _is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _available(ds: DaemonSet, pod: Pod, now: float) -> bool:
    return availability.is_available(pod, ds.spec.min_ready_seconds, now)
