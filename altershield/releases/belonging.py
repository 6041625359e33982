"""Which records are a workload's."""

from altershield.api.kinds import WorkloadRef
from altershield.releases.release import Release, version
from altershield.workloads import change_workload_name


def family(namespace: str, workload: WorkloadRef) -> str:
    """What the names of all records of a workload have in common, for an index by `family_of`."""
    return f"{namespace}/{change_workload_name(workload.kind, workload.name, '')}"


def family_of(release: Release) -> str:
    """The family that a record bears the name of."""
    metadata = release.metadata
    return f"{metadata.namespace}/{metadata.name.removesuffix(version(release))}"


def belongs(release: Release, workload: WorkloadRef) -> bool:
    """Whether a record that bears the workload's name is about this very one.

    Where a workload was deleted, the records of it may be there for a moment, and with `--cascade=orphan` they stay:
    then they have no owner, and are the namesake's.
    """
    meant = release.spec.workload_ref
    if workload.uid and meant.uid == workload.uid:
        return True
    owner = release.metadata.controller
    if owner is not None:
        ours = (workload.api_version, workload.kind, workload.uid)
        return (owner.api_version, owner.kind, owner.uid) == ours
    return not meant.kind or (meant.kind, meant.name) == (workload.kind, workload.name)
