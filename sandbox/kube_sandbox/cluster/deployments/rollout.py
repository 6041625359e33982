"""The sizes of a Deployment's ReplicaSets: computes the next sizes from the Deployment and its ReplicaSets. Pure
functions.

The rules are those of the Deployment controller of Kubernetes (pkg/controller/deployment: rolling.go, recreate.go,
sync.go). One call is one step; the change of a ReplicaSet triggers the next one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kube_sandbox.cluster.kinds import Deployment, ReplicaSet
from kube_sandbox.cluster.shares import share

DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


class Scale(NamedTuple):
    replica_set: ReplicaSet
    replicas: int


class Bounds(NamedTuple):
    surge: int
    """Pods that may exist beyond `spec.replicas`."""
    unavailable: int
    """Pods of `spec.replicas` that may be unavailable."""


def bounds(deployment: Deployment) -> Bounds:
    """maxSurge and maxUnavailable in pods. Percentages are rounded up for maxSurge and down for maxUnavailable. If both
    are 0, one pod may be unavailable; else no step would be possible."""
    desired = deployment.spec.replicas
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type != "RollingUpdate" or rolling is None:
        return Bounds(0, 0)
    surge = share(rolling.max_surge, desired, round_up=True)
    unavailable = share(rolling.max_unavailable, desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(surge, min(unavailable, desired))


def rolling(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The next step of a rolling update. The new ReplicaSet grows within maxSurge. If it cannot grow, the old ones
    shrink within maxUnavailable. Empty if there is nothing to do until pods change."""
    size = new_size(deployment, new.spec.replicas, [new, *old])
    if size != new.spec.replicas:
        return [Scale(new, size)]
    return _shrink_old(deployment, new, [rs for rs in old if rs.spec.replicas > 0])


def recreate(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The next step of a Recreate: old ReplicaSets shrink to zero first. The caller waits until their pods are gone."""
    if shrink := [Scale(rs, 0) for rs in old if rs.spec.replicas > 0]:
        return shrink
    if new is None or new.spec.replicas == deployment.spec.replicas:
        return []
    return [Scale(new, deployment.spec.replicas)]


def scaled(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The sizes after a change of `spec.replicas`, and the only step of a paused Deployment. Each ReplicaSet keeps its
    share, so that scaling during a release neither continues nor reverts the release.

    A Scale to the current size updates the annotations of the ReplicaSet only."""
    desired = deployment.spec.replicas
    everything = [*([new] if new else []), *old]
    active = [rs for rs in everything if rs.spec.replicas > 0]
    if len(active) <= 1:
        latest = active[0] if active else new or max(old, key=_age, default=None)
        return [Scale(latest, desired)] if latest and latest.spec.replicas != desired else []
    if new is not None and _is_saturated(deployment, new):
        return [Scale(rs, 0) for rs in old if rs.spec.replicas > 0]
    if deployment.spec.strategy.type != "RollingUpdate":
        return []
    return _proportional(deployment, active)


def is_scaling(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> bool:
    """Whether `spec.replicas` has changed since the controller last scaled the ReplicaSets."""
    for rs in replica_sets:
        recorded = _count(rs.metadata.annotations.get(DESIRED_REPLICAS))
        if rs.spec.replicas > 0 and recorded is not None and recorded != deployment.spec.replicas:
            return True
    return False


def new_size(deployment: Deployment, present: int, replica_sets: Iterable[ReplicaSet]) -> int:
    """The size that maxSurge allows the new ReplicaSet, which has size `present` now."""
    desired = deployment.spec.replicas
    if deployment.spec.strategy.type != "RollingUpdate" or present >= desired:
        return desired
    allowed = desired + bounds(deployment).surge - total(replica_sets)
    return present + max(0, min(allowed, desired - present))


def replica_annotations(deployment: Deployment) -> dict[str, str]:
    """The annotations of a ReplicaSet that have the size of the Deployment."""
    desired = deployment.spec.replicas
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + bounds(deployment).surge)}


def total(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(rs.spec.replicas for rs in replica_sets)


def available(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(rs.status.available_replicas for rs in replica_sets)


def _shrink_old(deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet]) -> list[Scale]:
    least = deployment.spec.replicas - bounds(deployment).unavailable
    # Unavailable pods of the new ReplicaSet do not count: they must not allow the deletion of another old pod.
    allowed = total([new, *old]) - least - (new.spec.replicas - new.status.available_replicas)
    if not old or allowed <= 0:
        return []
    sizes = {rs.metadata.name: rs.spec.replicas for rs in old}
    old = sorted(old, key=_age)

    spare = available([new, *old]) - least
    for rs in old:  # unavailable pods first: their deletion costs no availability, and they must not block the release
        if allowed <= 0:
            break
        unhealthy = rs.spec.replicas - rs.status.available_replicas
        if unhealthy < 0:  # the deletion of its pods is refused: the controller reports an error until they are gone
            spare = 0
            break
        cleaned = min(allowed, unhealthy)
        sizes[rs.metadata.name] -= cleaned
        allowed -= cleaned

    for rs in old:
        if spare <= 0:
            break
        removed = min(sizes[rs.metadata.name], spare)
        sizes[rs.metadata.name] -= removed
        spare -= removed
    return [Scale(rs, sizes[rs.metadata.name]) for rs in old if sizes[rs.metadata.name] != rs.spec.replicas]


def _proportional(deployment: Deployment, active: list[ReplicaSet]) -> list[Scale]:
    desired = deployment.spec.replicas
    most = desired + bounds(deployment).surge if desired > 0 else 0
    to_add = most - total(active)
    # The largest first. Among equals, the newer first when growing, the older first when shrinking.
    order = sorted(active, key=_age, reverse=to_add > 0)
    order.sort(key=lambda rs: rs.spec.replicas, reverse=True)

    sizes: list[int] = []
    added = 0
    for rs in order:
        share = _share(deployment, rs, most)
        part = min(share, to_add - added) if to_add > 0 else max(share, to_add - added)
        part = part if to_add != 0 and to_add != added else 0
        sizes.append(rs.spec.replicas + part)
        added += part
    sizes[0] = max(0, sizes[0] + to_add - added)  # the remainder from rounding
    return [Scale(rs, size) for rs, size in zip(order, sizes, strict=True)]


def _share(deployment: Deployment, rs: ReplicaSet, most: int) -> int:
    """The number of pods that this ReplicaSet gains or (negative) loses by its share of the former total."""
    if deployment.spec.replicas == 0:
        return -rs.spec.replicas
    before = _count(rs.metadata.annotations.get(MAX_REPLICAS)) or deployment.status.replicas
    if before == 0:
        return 0
    return int(rs.spec.replicas * most / before + 0.5) - rs.spec.replicas


def _is_saturated(deployment: Deployment, rs: ReplicaSet) -> bool:
    desired = deployment.spec.replicas
    return (
        rs.spec.replicas == desired
        and _count(rs.metadata.annotations.get(DESIRED_REPLICAS)) == desired
        and rs.status.available_replicas == desired
    )


def _count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) < 2**31 else None


def _age(rs: ReplicaSet) -> tuple[str, str]:
    """Sorts from old to new."""
    return rs.metadata.creation_timestamp or "", rs.metadata.name
