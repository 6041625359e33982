"""The input of a decision about a release: its ChangeWorkload, the workload and its pods."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from altershield.api.change_workload import SourceRef
from altershield.api.meta import Condition
from altershield.api.ops_config import Settings
from altershield.gates.release import Closed
from altershield.releases.release import NO_ROLLBACK_TARGET
from altershield.workloads.workload import Workload
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.pods.health import Timing


class RollbackReason(StrEnum):
    """Reasons of the condition RolledBack."""

    POD_NOT_UP = "PodNotUp"
    """Pods were not up in time."""
    REQUESTED = "Requested"
    """A person wrote `status.status: Rollback`."""
    VERIFICATION_FAILED = "VerificationFailed"
    """Pods failed verification, and the DefensePolicy has `onFailure: rollback`."""
    NOT_UNDONE = "NotUndone"
    """Pods were not up in time or failed verification. A rollback was not possible, so the release was suspended."""
    NO_TARGET = NO_ROLLBACK_TARGET
    """A person requested a rollback, but no suitable version to go back to exists."""
    WITHDRAWN = "Withdrawn"
    """The reasons for the rollback did not hold any more when it was to be carried out."""
    WRITE_REFUSED = "WriteRefused"
    """The API server refuses the write, because of a policy, a quota or a webhook. It is retried."""
    RELEASED_AGAIN = "ReleasedAgain"
    """The version was rolled back before and then released again on purpose. It is not rolled back
    automatically again."""
    SUPERSEDED = "Superseded"
    """Another version was released before this one could be rolled back."""


class StallReason(StrEnum):
    """Reasons of the condition Stalled, in addition to `altershield.workloads.pods.Fault`."""

    FAILED_CREATE = "FailedCreate"
    """Pods cannot be created, for example because of a webhook, a quota or a missing service account."""
    PODS_MISSING = "PodsMissing"
    """Fewer pods of this version exist than should exist, and no status has the reason."""
    POD_TERMINATING = "PodTerminating"
    """A pod that is terminating keeps the controller from creating the pod in its place."""
    PODS_OVERDUE = "PodsOverdue"
    """Pods are not up in time, but too few of them to end the release."""
    CHECK_HELD = "CheckHeld"
    """A check has no result, and the DefensePolicy says that a person decides."""
    PAUSED = "Paused"
    """The rollout of the workload is paused."""
    NOT_ROLLED_OUT = "NotRolledOut"
    """The workload's controller has not created an object with the template yet."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object that holds another template of the workload, as read from the API server: a possible target of a
    rollback."""

    source: SourceRef
    """The object. `fingerprint` is that of the template that it holds now."""
    serving: int
    """The number of its ready pods."""
    pods: int
    """The number of its pods."""
    release: Release | None
    """The ChangeWorkload of its version, or None."""
    numbers: tuple[int, ...] = ()
    """The numbers of its releases in the history."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The input of a decision."""

    release: Release
    workload: Workload
    groups: PodGroups | None
    """The pods of the release by group; None until the object that holds the template is known."""
    others: Sequence[Release]
    """The workload's other ChangeWorkloads."""
    settings: Settings
    timing: Timing
    source: SourceRef
    """The object that holds the template of this version; empty if it is not known."""
    previous: SourceRef
    """The object of the last version that passed before this one; empty if it is not known."""
    batches: Sequence[Batch] = ()
    """The ChangePods of the release, if its policy has checks that are about no batch; else empty."""
    checked: bool = False
    """Whether checks of a DefensePolicy, or an AlterShield server, verify the batches."""
    budget: str = ""
    """The name of a PodUnavailableBudget that covers pods of the workload and admits no deletion now."""
    closed: Sequence[Closed] = ()
    """The gates that are closed for the next step of a release in steps."""
    reported: Condition | None = None
    """The condition Reported, if it is new."""
    own_pause: bool = False
    """Whether the rollout is paused as AlterShield paused it, and nobody else has changed this since. False if
    `targets` were not read."""
    targets: Sequence[Target] | None = None
    """The possible targets of a rollback, read from the API server; None if they were not read."""
    pods_read: bool = False
    """Whether `groups` is up to date with the API server. True if `targets` were read."""
    events_read: bool = False
    """Whether the Events of pods that are not up were read for this decision."""
