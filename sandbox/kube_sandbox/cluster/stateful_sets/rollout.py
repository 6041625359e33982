"""The next step of a StatefulSet, and its status. Pure functions.

The rules are those of pkg/controller/statefulset/stateful_set_control.go. With policy OrderedReady, each pod waits
until the pods before it are available, also during an update. A pod that never becomes ready therefore blocks the
update, even after the template is corrected, until a user deletes that pod. With policy Parallel, only updates wait.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kube_sandbox.cluster import availability
from kube_sandbox.cluster.history import Revisions
from kube_sandbox.cluster.kinds import Pod
from kube_sandbox.cluster.shares import share
from kube_sandbox.cluster.stateful_sets import pods as stateful_pods
from kube_sandbox.cluster.workload_kinds import StatefulSet, StatefulSetStatus


class Plan(NamedTuple):
    create: list[int]
    """The ordinals of the pods to create."""
    delete: list[Pod]
    label: list[Pod]
    """The pods that lack the labels of their identity."""


def plan(set_: StatefulSet, pods: Sequence[Pod], revisions: Revisions, now: float) -> Plan:
    """The next step of a StatefulSet that is not being deleted. The change of a pod triggers the following step."""
    steps = Plan([], [], [])
    replicas, condemned = _parts(set_, pods)
    done = _in_order(set_, replicas, condemned, steps, now) if _ordered(set_) else _at_once(set_, replicas, steps)
    if not _ordered(set_):
        steps.delete.extend(pod for pod in condemned if not _is_terminating(pod))
    if done and set_.spec.update_strategy.type == "RollingUpdate":
        rolling = set_.spec.update_strategy.rolling_update
        update = _update_one if rolling is None or rolling.max_unavailable is None else _update_some
        known = {pod.metadata.uid for pod in steps.delete}
        outdated = update(set_, list(replicas.values()), revisions, now)
        steps.delete.extend(pod for pod in outdated if pod.metadata.uid not in known)
    return steps


def is_of_current(set_: StatefulSet, number: int) -> bool:
    """Whether a missing pod with this ordinal is created from the current revision, not the update revision."""
    strategy = set_.spec.update_strategy
    if strategy.type != "RollingUpdate":
        return False
    kept = strategy.rolling_update.partition if strategy.rolling_update else set_.status.current_replicas
    return number < stateful_pods.start(set_) + kept


def status(
    set_: StatefulSet, pods: Iterable[Pod], revisions: Revisions, collisions: int, now: float
) -> StatefulSetStatus:
    pods = list(pods)
    staying = [stateful_pods.revision(pod) for pod in pods if not _is_terminating(pod)]
    replicas, wanted = len(pods), set_.spec.replicas
    ready = sum(_ready(pod) for pod in pods)
    updated = staying.count(revisions.update)
    current = staying.count(revisions.current)
    is_complete = set_.spec.update_strategy.type == "RollingUpdate" and updated == ready == replicas == wanted
    return StatefulSetStatus(
        observed_generation=set_.metadata.generation,
        replicas=replicas,
        ready_replicas=ready,
        available_replicas=sum(_available(set_, pod, now) for pod in pods),
        current_replicas=updated if is_complete else current,
        updated_replicas=updated,
        current_revision=revisions.update if is_complete else revisions.current,
        update_revision=revisions.update,
        collision_count=collisions,
    )


def _parts(set_: StatefulSet, pods: Iterable[Pod]) -> tuple[dict[int, Pod | None], list[Pod]]:
    """The wanted pods by ordinal (None if missing), and the surplus pods, highest ordinal first."""
    first = stateful_pods.start(set_)
    replicas: dict[int, Pod | None] = dict.fromkeys(range(first, first + set_.spec.replicas))
    condemned: list[tuple[int, Pod]] = []
    for pod in pods:
        number = stateful_pods.ordinal(set_, pod)
        if number in replicas:
            replicas[number] = pod
        elif number is not None:
            condemned.append((number, pod))
    condemned.sort(key=lambda pair: pair[0], reverse=True)
    return replicas, [pod for _, pod in condemned]


def _in_order(
    set_: StatefulSet, replicas: dict[int, Pod | None], condemned: Sequence[Pod], steps: Plan, now: float
) -> bool:
    """Add the ordered step to `steps`. Returns whether an update may continue."""
    for number, pod in replicas.items():
        if pod is None:
            steps.create.append(number)
            return False
        if pod.ended and not _is_terminating(pod):
            steps.delete.append(pod)
        if _unavailable(set_, pod, now):
            return False
        if not stateful_pods.has_identity(set_, pod, number):
            steps.label.append(pod)
    # All wanted pods are available here, so the first unavailable pod can only be a surplus one.
    first_unavailable = next((pod for pod in reversed(condemned) if _unavailable(set_, pod, now)), None)
    for pod in condemned[:1]:
        if not _is_terminating(pod) and (_available(set_, pod, now) or pod is first_unavailable):
            steps.delete.append(pod)
        return False
    return True


def _at_once(set_: StatefulSet, replicas: dict[int, Pod | None], steps: Plan) -> bool:
    for number, pod in replicas.items():
        if pod is None:
            steps.create.append(number)
        elif pod.ended:
            if not _is_terminating(pod):
                steps.delete.append(pod)
        elif not stateful_pods.has_identity(set_, pod, number):
            steps.label.append(pod)
    return True


def _update_one(set_: StatefulSet, replicas: Sequence[Pod | None], revisions: Revisions, now: float) -> list[Pod]:
    """The pod with the highest ordinal that is not updated, if all pods above it are updated and available."""
    for pod in reversed(replicas[_partition(set_) :]):
        if pod is None:
            return []
        if stateful_pods.revision(pod) != revisions.update and not _is_terminating(pod):
            return [pod]
        if _unavailable(set_, pod, now):
            return []
    return []


def _update_some(set_: StatefulSet, replicas: Sequence[Pod | None], revisions: Revisions, now: float) -> list[Pod]:
    """The pods to update within maxUnavailable. The API server keeps that field only with the feature gate
    MaxUnavailableStatefulSet, which is off by default in 1.36. With policy Parallel, unavailable pods of an old
    revision do not count as unavailable."""
    rolling = set_.spec.update_strategy.rolling_update
    wanted = rolling.max_unavailable if rolling and rolling.max_unavailable is not None else 1
    allowed = max(1, share(wanted, set_.spec.replicas, round_up=False))
    for pod in replicas:
        is_old = pod is not None and stateful_pods.revision(pod) != revisions.update and not _is_terminating(pod)
        if (pod is None or _unavailable(set_, pod, now)) and (_ordered(set_) or not is_old):
            allowed -= 1
    outdated = [
        pod
        for pod in reversed(replicas[_partition(set_) :])
        if pod is not None and stateful_pods.revision(pod) != revisions.update and not _is_terminating(pod)
    ]
    return outdated[: max(0, allowed)]


def _partition(set_: StatefulSet) -> int:
    rolling = set_.spec.update_strategy.rolling_update
    return rolling.partition if rolling else 0


def _ordered(set_: StatefulSet) -> bool:
    return set_.spec.pod_management_policy != "Parallel"


def _is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and pod.ready_since is not None


def _available(set_: StatefulSet, pod: Pod, now: float) -> bool:
    return _ready(pod) and availability.is_available(pod, set_.spec.min_ready_seconds, now)


def _unavailable(set_: StatefulSet, pod: Pod, now: float) -> bool:
    return _is_terminating(pod) or not _available(set_, pod, now)
