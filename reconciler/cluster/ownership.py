"""Decides by owner references to which object, and to which workload, an object belongs.

An object belongs to an owner if its controller owner reference has the owner's uid, kind and API group, and both are in
one namespace. Names and labels do not count: anybody who may create objects can choose them.
"""

from typing import NamedTuple

from altershield.api.change_workload import ChangeWorkload
from altershield.api.resources import CHANGE_WORKLOADS, GROUP
from altershield.workloads import ADAPTERS, BY_KIND, named_kind
from altershield.workloads.meta import Owner
from altershield.workloads.workload import Workload
from kube_base.resources import GroupKind
from reconciler.cluster.batch import Batch


class WorkloadKey(NamedTuple):
    """Identifies a workload."""

    kind: GroupKind
    namespace: str
    name: str


def workload_key(release: ChangeWorkload) -> WorkloadKey:
    """The key of the workload that a ChangeWorkload is about."""
    reference = release.spec.workload_ref
    if reference.kind:
        kind, name = named_kind(reference), reference.name
    else:  # ChangeWorkloads of older releases of AlterShield have no workloadRef
        owner, name = release.metadata.controller, release.spec.service_name
        kind = named_kind(owner) if owner is not None else ADAPTERS[0].resource.group_kind
    return WorkloadKey(kind, release.metadata.namespace, name)


def is_controlled_by(release: ChangeWorkload, workload: Workload) -> bool:
    """Whether the ChangeWorkload is owned by exactly this workload."""
    owner, adapter = release.metadata.controller, BY_KIND[workload.group_kind]
    return (
        owner is not None
        and owner.uid == workload.metadata.uid
        and (owner.api_version, owner.kind) == (adapter.resource.api_version, workload.kind)
    )


def is_batch_of(each: Batch, release: ChangeWorkload) -> bool:
    """Whether the ChangePod is owned by exactly this ChangeWorkload."""
    owner = each.owner
    return (owner.uid, owner.kind) == (release.metadata.uid, CHANGE_WORKLOADS.kind) and owner.api_version.startswith(
        GROUP
    )


def is_workload(owner: Owner) -> bool:
    """Whether the owner is of a kind of workload that AlterShield handles."""
    adapter = BY_KIND.get(owner.group_kind)
    return adapter is not None and owner.api_version == adapter.resource.api_version


_INTERMEDIATE = {
    adapter.intermediate.group_kind: adapter.intermediate for adapter in ADAPTERS if adapter.intermediate is not None
}


def is_intermediate(owner: Owner) -> bool:
    """Whether the owner is of an intermediate kind, as ReplicaSets are: workloads control it, and it controls pods."""
    resource = _INTERMEDIATE.get(owner.group_kind)
    return resource is not None and owner.api_version == resource.api_version
