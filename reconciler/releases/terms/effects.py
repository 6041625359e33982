"""The effects of a decision, in three phases: before the status is stored, the status itself, and after it is stored.

Every effect follows from the state of the cluster. So an effect that is lost in a crash is decided again. An Event is
stored with the status, and is written after it.
"""

from dataclasses import dataclass

from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, SourceRef
from altershield.api.pod_verdicts import PodInfo
from altershield.releases.history import Evidence
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from reconciler.cluster.batch import Batch
from reconciler.rollout.targets import NewHold


@dataclass(frozen=True, slots=True)
class Mark:
    """Write the label `operate-finished` on a pod. `at`: when the pod came up, Unix seconds."""

    pod: Pod
    at: int


@dataclass(frozen=True, slots=True)
class RestoreLabel:
    """Restore the version label of an object of this version, which somebody changed or never wrote."""

    obj: Pod | Set


@dataclass(frozen=True, slots=True)
class CreateBatch:
    """Create the ChangePod of these pods, or of checks of the release. Pods that have a verdict already keep it as the
    result."""

    number: int
    pods: tuple[PodInfo, ...]
    failed_by: str = ""
    """The `Giver` of the verdict on the pods; empty if the verdict is AlterShield's own."""
    phase: str = ""
    """A `CheckPhase`: it has the checks of this phase of the release, and no pods."""
    step: int = 0
    """The step that waits for these checks."""


@dataclass(frozen=True, slots=True)
class SetThreshold:
    """Set `spec.countThreshold` of the ChangeWorkload to the value in effect."""

    count: int


@dataclass(frozen=True, slots=True)
class Overrule:
    """Give these pods of a ChangePod the verdict `pass`, as a person does. It replaces a failing verdict. If the batch
    waits for a person (`waiting`), only pods without a verdict get it. Checks of the release count as passed."""

    batch: Batch
    pods: frozenset[str]
    """The names of the pods."""
    by: str
    """The user who approves."""
    message: str
    waiting: bool = False
    skip: bool = False
    """Whether the approval is reported to the AlterShield server that failed the batch."""


@dataclass(frozen=True, slots=True)
class AllowRepair:
    """Set the label `ignored-suspend` of the workload: the next release passes the suspension."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Remove the label `suspend` from the workload, before the status that explains it is replaced."""


@dataclass(frozen=True, slots=True)
class KeepHistory:
    """Keep the release in the history of its workload, before the status is stored."""

    status: ChangeWorkloadStatus
    """The status of the release that is about to be stored."""
    evidence: Evidence | None = None
    """Of a release that ends now; None: what was kept before stays."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Set the label `suspend` of the workload to the Unix second `since`, after the status that explains it
    is stored."""

    since: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause the rollout of the workload, if it is not paused, and store the changed fields in an annotation."""

    version: str
    """The version that failed."""
    reason: str
    until: int = 0
    """When the pause ends by itself, Unix seconds; 0: it does not end by itself."""


@dataclass(frozen=True, slots=True)
class Unpause:
    """Take back a `Pause`: restore the fields that it changed, unless somebody else has changed them since."""


@dataclass(frozen=True, slots=True)
class SetHold:
    """Write how many pods may have the version of a release in steps. The gatekeeper writes the fields that follow."""

    hold: NewHold


@dataclass(frozen=True, slots=True)
class EndHold:
    """Give the workload of a release in steps the user's own values of the held fields again."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict an old pod, so that the controller of a held workload creates one of the version."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class FreeFields:
    """Remove the entries of AlterShield's field manager about the held fields, after a hold has ended."""


@dataclass(frozen=True, slots=True)
class ReleaseAgain:
    """Release the template in the object `target` again. `by`: the user who requested this; empty if no user did."""

    target: SourceRef
    by: str = ""


@dataclass(frozen=True, slots=True)
class RestoreManagers:
    """Give the template of `target`, which was released again, back to the field managers that owned it before."""

    target: SourceRef


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a ChangeWorkload or ChangePod that is not needed any more."""

    obj: ChangeWorkload | Batch


@dataclass(frozen=True, slots=True)
class Repeat:
    """Have an AlterShield server repeat its check before this batch."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class Announce:
    """Store an Event about the workload with the status, and write it. `warning`: its type is Warning, else Normal."""

    reason: str
    message: str
    warning: bool = True


Before = (
    Mark
    | RestoreLabel
    | RestoreManagers
    | FreeFields
    | CreateBatch
    | SetThreshold
    | Overrule
    | AllowRepair
    | Resume
    | KeepHistory
)
After = Suspend | Pause | Unpause | SetHold | EndHold | Evict | ReleaseAgain | Remove | Repeat | Announce


@dataclass(frozen=True, slots=True)
class Decision:
    """The effects to carry out now.

    `status`: the status to store, or None. `lists`: the status includes the lists of pods; otherwise the stored lists
    stay. `read_live`: decide again with data read from the API server, because the caches may be behind. `read_pods`:
    the same, but only the pods are read. `read_events`: the same, but only the Events of a few pods are read.
    `requeue_after`: seconds after which the next decision is due, or None.
    """

    status: ChangeWorkloadStatus | None = None
    before: tuple[Before, ...] = ()
    after: tuple[After, ...] = ()
    read_live: bool = False
    read_pods: bool = False
    read_events: bool = False
    lists: bool = False
    requeue_after: float | None = None
