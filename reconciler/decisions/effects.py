"""What decisions ask for. The executor (`reconciler.executor`) carries them out.

Every effect follows from the cluster's state alone, so one that was lost in a crash is asked for again. Only an
Announce may be lost: it comes after the status that says the same.
"""

import enum
from dataclasses import dataclass

from altershield.api.kinds import ChangePod, ChangeWorkload, PodInfo
from altershield.api.views import ReplicaSet


@dataclass(frozen=True, slots=True)
class CreateChangePod:
    """Verify these pods as one batch."""

    number: int
    pods: tuple[PodInfo, ...]


@dataclass(frozen=True, slots=True)
class SetThreshold:
    """Let the ChangeWorkload's `spec.countThreshold` say what is in effect."""

    count: int


@dataclass(frozen=True, slots=True)
class Suspend:
    """Put the suspend label on the Deployment, with the Unix second `since`."""

    since: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Take the suspend label off the Deployment."""


@dataclass(frozen=True, slots=True)
class ReleaseAgain:
    """Make this ReplicaSet's template the Deployment's."""

    replica_set: ReplicaSet


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a record that is no longer needed."""

    record: ChangeWorkload | ChangePod


@dataclass(frozen=True, slots=True)
class Announce:
    """An Event on the Deployment. `warning`: somebody should look."""

    reason: str
    message: str
    warning: bool = True


@dataclass(frozen=True, slots=True)
class Requeue:
    """Decide again after so many seconds: something becomes due then."""

    seconds: float


class Call(enum.Enum):
    """What an AlterShield server can be asked about a batch."""

    SUBMIT_PRE = enum.auto()
    POLL_PRE = enum.auto()
    SUBMIT_POST = enum.auto()
    POLL_POST = enum.auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """Call the AlterShield server, and decide again with its answer."""

    call: Call


Effect = CreateChangePod | SetThreshold | Suspend | Resume | ReleaseAgain | Remove | Announce | Requeue | Ask
