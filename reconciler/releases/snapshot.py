"""What a decision is about: the record of a release and what the cluster holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from altershield.api.kinds import SourceRef
from altershield.api.ops_config import Settings
from altershield.workloads.workload import Workload
from reconciler.releases.health import Timing
from reconciler.releases.pod_groups import PodGroups
from reconciler.releases.projection import Release


class RollbackReason(StrEnum):
    """Reasons of the condition RolledBack."""

    POD_NOT_UP = "PodNotUp"
    """Pods were not up in time."""
    REQUESTED = "Requested"
    """A person wrote `status.status: Rollback`."""
    NOT_UNDONE = "NotUndone"
    """Pods were not up in time, but it could not be undone, so it was suspended."""
    NO_TARGET = "NoTarget"
    """It was requested, but it is not known what to go back to."""
    WITHDRAWN = "Withdrawn"
    """The intent did not hold any more when it was to be carried out."""
    WRITE_REFUSED = "WriteRefused"
    """The API server refuses the write: a policy, a quota, our own gate. It is tried again."""
    RELEASED_AGAIN = "ReleasedAgain"
    """It was rolled back before, and released again on purpose; it is not rolled back by itself a second time."""
    SUPERSEDED = "Superseded"
    """Another version was released before the old one could be."""


class StallReason(StrEnum):
    """Reasons of the condition Stalled, beside those of `altershield.workloads.pods.Fault`."""

    FAILED_CREATE = "FailedCreate"
    """Pods cannot be made: a webhook, a quota, a missing service account."""
    PODS_MISSING = "PodsMissing"
    """Fewer pods of this version than there should be, and nobody says why."""
    PODS_OVERDUE = "PodsOverdue"
    """Pods are not up in time, but too few of them to end the release."""
    PAUSED = "Paused"
    """The workload is."""
    NOT_ROLLED_OUT = "NotRolledOut"
    """Its controller has made nothing of the template yet."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object that holds another template of the same workload, as the API server has it now."""

    source: SourceRef
    """`fingerprint` is that of its template now."""
    serving: int
    """Pods of it that are ready."""
    pods: int
    """Pods of it."""
    release: Release | None
    """Of its version, if there is one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    release: Release
    workload: Workload
    groups: PodGroups | None
    """None as long as it is not known which object holds the template: then there are no pods to speak of."""
    others: Sequence[Release]
    """The workload's other records."""
    settings: Settings
    timing: Timing
    source: SourceRef
    """The object that holds the template of this version, as far as it is known."""
    previous: SourceRef
    """The last version that passed before this one, likewise."""
    targets: Sequence[Target] | None = None
    """None where nobody looked. With them, the book is as the API server has it now."""
