"""The gates that are closed for the next release of a workload, as far as this user may read them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from altershield.api import released_by
from altershield.gates.freezes import FREEZES
from altershield.gates.gate import Gate
from altershield.gates.judge import judge
from altershield.gates.release import Closed, Placed, Release
from altershield.gates.windows import WINDOWS
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.meta import ObjectMeta
from kube_base.resources import NAMESPACES, Resource

_GATES: tuple[Gate[Any, Any], ...] = (WINDOWS, FREEZES)
"""Those that are closed at times. The others depend on what a release changes."""


class _Object(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


async def closed_for(client: Client, workload: Workload, system_namespace: str, now: float) -> tuple[Closed, ...]:
    """The windows and freezes that are closed at `now`, Unix seconds. What this user may not read is left out, as are
    gates of AlterShield's namespace that select namespaces, if the user may not read the workload's namespace."""
    namespace = workload.metadata.namespace
    objects: dict[tuple[Gate[Any, Any], str], list[Placed]] = {}
    for gate in _GATES:
        for each in dict.fromkeys((system_namespace, namespace)):
            objects[gate, each] = await _in_force(client, gate, each)
    if not any(objects.values()):
        return ()
    labels = await _labels(client, NAMESPACES, namespace)
    if labels is None:
        for gate in _GATES:
            found = objects[gate, system_namespace]
            objects[gate, system_namespace] = [each for each in found if each.rules.namespace_selector is None]
    own = await _labels(client, BY_KIND[workload.group_kind].resource, workload.metadata.name, namespace)
    last = released_by.read(workload.released_by)
    known = (own or {}, *((last.labels,) if last is not None and last.labels else ()))
    release = Release(namespace, labels or {}, known)
    return judge(release, lambda gate, place: objects.get((gate, place), ()), system_namespace, now)


async def _in_force(client: Client, gate: Gate[Any, Any], namespace: str) -> list[Placed]:
    """The objects of a namespace. Empty, if the user may not read them, or the cluster does not know the kind."""
    try:
        found = (await client.list(gate.resource, namespace, as_=gate.type)).items
    except (ForbiddenError, NotFoundError):
        return []
    return [placed for each in found if (placed := gate.in_force(each)) is not None]


async def _labels(client: Client, resource: Resource, name: str, namespace: str = "") -> Mapping[str, str] | None:
    """The labels of an object; None, if the user may not read it, or it is gone."""
    try:
        return (await client.get(resource, name, namespace, as_=_Object)).metadata.labels
    except (ForbiddenError, NotFoundError):
        return None
