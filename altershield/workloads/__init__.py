"""The kinds of workloads that AlterShield handles, each described by an adapter. No other code knows a kind by name."""

from collections.abc import Sequence
from functools import partial

from altershield.workloads import adapter as _adapter
from altershield.workloads.adapter import Adapter, is_pod_of_revision
from altershield.workloads.clone_sets import CloneSets
from altershield.workloads.daemon_sets import DaemonSets
from altershield.workloads.deployments import Deployments
from altershield.workloads.stateful_sets import StatefulSets
from kube_base.resources import GroupKind

ADAPTERS: Sequence[Adapter] = (Deployments(), StatefulSets(), DaemonSets(), CloneSets())

BY_KIND = {adapter.resource.group_kind: adapter for adapter in ADAPTERS}

_PREFIXES = tuple(adapter.change_workload_prefix for adapter in ADAPTERS)


named_kind = partial(_adapter.named_kind, BY_KIND)
"""The kind that a reference to a workload names."""


def change_workload_name(kind: GroupKind, workload: str, version: str) -> str:
    """The name of the ChangeWorkload of a version."""
    return _adapter.change_workload_name(BY_KIND[kind], workload, version, _PREFIXES)


__all__ = ["ADAPTERS", "BY_KIND", "Adapter", "change_workload_name", "is_pod_of_revision", "named_kind"]
