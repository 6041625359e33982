"""Which ChangeWorkloads belong to a workload."""

from altershield.api.change_workload import WorkloadRef
from altershield.releases.release import Release, version_of
from altershield.workloads import change_workload_name, named_kind


def workload_index_key(namespace: str, workload: WorkloadRef) -> str:
    """The key of a workload in an index by `release_index_key`: its namespace, and the common prefix of its
    ChangeWorkloads' names."""
    return f"{namespace}/{change_workload_name(named_kind(workload), workload.name, '')}"


def release_index_key(release: Release) -> str:
    """The key of a ChangeWorkload in an index: namespace and name, without the version."""
    metadata = release.metadata
    return f"{metadata.namespace}/{metadata.name.removesuffix(version_of(release))}"


def belongs(release: Release, workload: WorkloadRef) -> bool:
    """Whether a ChangeWorkload with the workload's name belongs to exactly this workload.

    The ChangeWorkloads of a deleted workload exist a moment longer. After a delete with `--cascade=orphan`, they stay
    without an owner, and belong to the next workload of that name.
    """
    reference = release.spec.workload_ref
    if workload.uid and reference.uid == workload.uid:
        return True
    owner = release.metadata.controller
    if owner is not None:
        ours = (workload.api_version, workload.kind, workload.uid)
        return (owner.api_version, owner.kind, owner.uid) == ours
    return not reference.kind or (named_kind(reference), reference.name) == (named_kind(workload), workload.name)
