"""What a decision asks for, in three phases: before the status is stored, the status, after it is stored.

Every effect follows from the cluster's state alone, so one that was lost in a crash is asked for again. Only an
Announce may be lost: it comes after the status that says the same.
"""

from dataclasses import dataclass

from altershield.api.kinds import ChangeWorkload, ChangeWorkloadStatus, PodInfo, SourceRef
from altershield.workloads.pods import Pod
from altershield.workloads.sets import Set
from reconciler.batches.batch import Batch


@dataclass(frozen=True, slots=True)
class Mark:
    """Put the label on a pod that says when it came up."""

    pod: Pod
    at: int


@dataclass(frozen=True, slots=True)
class PutBack:
    """Give an object of this version its version label again, which somebody changed or never wrote."""

    obj: Pod | Set


@dataclass(frozen=True, slots=True)
class CreateBatch:
    """Verify these pods as one batch; where they have a verdict already, that is its result."""

    number: int
    pods: tuple[PodInfo, ...]
    failed_by: str = ""
    """Whose verdict the pods have, where it is not AlterShield's own."""


@dataclass(frozen=True, slots=True)
class SetThreshold:
    """Let the ChangeWorkload's `spec.countThreshold` say what is in effect."""

    count: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Take the suspend label off the workload. Before the status that explained it goes."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Put the suspend label on the workload, with the Unix second `since`. After the status that explains it."""

    since: int


@dataclass(frozen=True, slots=True)
class ReleaseAgain:
    """Give the workload the template of its failed version's `target` again."""

    target: SourceRef


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod that its controller would wait for for ever."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a record that is no longer needed."""

    obj: ChangeWorkload | Batch


@dataclass(frozen=True, slots=True)
class Announce:
    """An Event on the workload. `warning`: somebody should look."""

    reason: str
    message: str
    warning: bool = True


Before = Mark | PutBack | CreateBatch | SetThreshold | Resume | DeletePod
After = Suspend | ReleaseAgain | Remove | Announce


@dataclass(frozen=True, slots=True)
class Decision:
    """`status` is what should be stored, None where nothing is to be written now. `look`: what is decided next needs
    the cluster as it is now, not as caches show it. `lists`: the status has the lists of pods, else they stay as they
    are. `again`: seconds after which something becomes due."""

    status: ChangeWorkloadStatus | None = None
    before: tuple[Before, ...] = ()
    after: tuple[After, ...] = ()
    read_live: bool = False
    lists: bool = False
    requeue_after: float | None = None
