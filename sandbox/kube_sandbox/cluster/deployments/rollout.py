"""How many pods each ReplicaSet of a Deployment shall have next. Pure: a Deployment and its ReplicaSets in, the
sizes to set out.

The rules are those of Kubernetes' deployment controller (pkg/controller/deployment: rolling.go, recreate.go,
sync.go). One call is one step; ReplicaSets that changed bring the next.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kube_sandbox.cluster.shares import share
from kube_sandbox.cluster.views import Deployment, ReplicaSet

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
    """maxSurge and maxUnavailable in pods: percentages of the first are rounded up, of the second down; where both
    come to nothing one pod may be unavailable, or nothing could ever move."""
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
    """The next step of a rolling update: the new ReplicaSet grows as far as maxSurge lets it; where it cannot, old
    ones shrink as far as maxUnavailable lets them. Empty: nothing to do until pods change."""
    size = new_size(deployment, new.spec.replicas, [new, *old])
    if size != new.spec.replicas:
        return [Scale(new, size)]
    return _shrink_old(deployment, new, [rs for rs in old if rs.spec.replicas > 0])


def recreate(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """Old ReplicaSets go to zero first. The caller makes sure that their pods are gone before it asks again."""
    if shrink := [Scale(rs, 0) for rs in old if rs.spec.replicas > 0]:
        return shrink
    if new is None or new.spec.replicas == deployment.spec.replicas:
        return []
    return [Scale(new, deployment.spec.replicas)]


def scaled(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[Scale]:
    """The answer to a changed `spec.replicas` (and all that a paused Deployment does): every ReplicaSet keeps its
    share, so that scaling in the middle of a release neither hastens nor undoes it.

    A Scale to the present size means that only the bookkeeping annotations are to be brought up to date."""
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
    """Whether `spec.replicas` changed since the ReplicaSets were last sized."""
    for rs in replica_sets:
        recorded = _count(rs.metadata.annotations.get(DESIRED_REPLICAS))
        if rs.spec.replicas > 0 and recorded is not None and recorded != deployment.spec.replicas:
            return True
    return False


def new_size(deployment: Deployment, present: int, replica_sets: Iterable[ReplicaSet]) -> int:
    """How big the new ReplicaSet (now `present`) may be beside the others."""
    desired = deployment.spec.replicas
    if deployment.spec.strategy.type != "RollingUpdate" or present >= desired:
        return desired
    room = desired + bounds(deployment).surge - total(replica_sets)
    return present + max(0, min(room, desired - present))


def replica_annotations(deployment: Deployment) -> dict[str, str]:
    """What each sized ReplicaSet remembers of the Deployment's size."""
    desired = deployment.spec.replicas
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + bounds(deployment).surge)}


def total(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(rs.spec.replicas for rs in replica_sets)


def available(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(rs.status.available_replicas for rs in replica_sets)


def _shrink_old(deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet]) -> list[Scale]:
    least = deployment.spec.replicas - bounds(deployment).unavailable
    # Pods of the new ReplicaSet that are not available yet are counted as if they were gone: they must not
    # make room for another old one to go.
    allowed = total([new, *old]) - least - (new.spec.replicas - new.status.available_replicas)
    if not old or allowed <= 0:
        return []
    sizes = {rs.metadata.name: rs.spec.replicas for rs in old}
    old = sorted(old, key=_age)

    for rs in old:  # first what is unhealthy anyway: nobody misses it, and it must not block the release
        unhealthy = max(0, rs.spec.replicas - rs.status.available_replicas)
        cleaned = min(allowed, unhealthy)
        sizes[rs.metadata.name] -= cleaned
        allowed -= cleaned

    spare = available([new, *old]) - least
    for rs in old:
        if spare <= 0:
            break
        going = min(sizes[rs.metadata.name], spare)
        sizes[rs.metadata.name] -= going
        spare -= going
    return [Scale(rs, sizes[rs.metadata.name]) for rs in old if sizes[rs.metadata.name] != rs.spec.replicas]


def _proportional(deployment: Deployment, active: list[ReplicaSet]) -> list[Scale]:
    desired = deployment.spec.replicas
    most = desired + bounds(deployment).surge if desired > 0 else 0
    to_add = most - total(active)
    # The biggest first; of equals the newer first when growing, the older first when shrinking.
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
    sizes[0] = max(0, sizes[0] + to_add - added)  # what rounding left over
    return [Scale(rs, size) for rs, size in zip(order, sizes, strict=True)]


def _share(deployment: Deployment, rs: ReplicaSet, most: int) -> int:
    """How many pods this ReplicaSet would gain (or lose) alone by its share of the former total."""
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
