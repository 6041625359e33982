"""The kinds of workloads that AlterShield handles, each described by an adapter. No other code knows a kind by name."""

from collections.abc import Sequence

from altershield.api.change_workload import WorkloadRef
from altershield.api.meta import OwnerReference
from altershield.api.resources import GroupKind
from altershield.workloads import adapter as _adapter
from altershield.workloads.adapter import Adapter, is_pod_of_revision
from altershield.workloads.clone_sets import CloneSets
from altershield.workloads.daemon_sets import DaemonSets
from altershield.workloads.deployments import Deployments
from altershield.workloads.stateful_sets import StatefulSets

ADAPTERS: Sequence[Adapter] = (Deployments(), StatefulSets(), DaemonSets(), CloneSets())

BY_KIND = {adapter.resource.group_kind: adapter for adapter in ADAPTERS}

_PREFIXES = tuple(adapter.change_workload_prefix for adapter in ADAPTERS)


def named_kind(reference: WorkloadRef | OwnerReference) -> GroupKind:
    """The kind that a reference names. Without an apiVersion, which objects of older releases of AlterShield may lack,
    it is the first kind of workloads with this name."""
    if not reference.api_version:
        for kind in BY_KIND:
            if kind.kind == reference.kind:
                return kind
    return GroupKind.of(reference.api_version, reference.kind)


def change_workload_name(kind: GroupKind, workload: str, version: str) -> str:
    """The name of the ChangeWorkload of a version."""
    return _adapter.change_workload_name(BY_KIND[kind], workload, version, _PREFIXES)


__all__ = ["ADAPTERS", "BY_KIND", "Adapter", "change_workload_name", "is_pod_of_revision", "named_kind"]
