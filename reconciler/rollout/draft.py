"""What follows for a release in steps, and its status under construction. Pure functions."""

from dataclasses import dataclass, field

import msgspec

from altershield.api.meta import plain_time
from altershield.api.rollout import Phase, RolloutStatus
from altershield.workloads.pods import Pod
from reconciler.rollout.targets import NewHold


@dataclass(frozen=True, slots=True)
class Event:
    """An Event about the workload."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """What follows for a release in steps. `wake`: when it may go on without an event, Unix seconds."""

    status: RolloutStatus
    new_hold: NewHold | None = None
    ends_hold: bool = False
    """Whether the user's own values of the held fields return now."""
    frees_fields: bool = False
    """Whether the entries of AlterShield's field manager about the held fields are removed, before the status is
    stored."""
    evicts: tuple[Pod, ...] = ()
    """The old pods that are evicted now."""
    events: tuple[Event, ...] = ()
    wake: float | None = None
    overdue: str = ""
    """Why the step is overdue; empty if it is not."""
    checks_said: str = ""
    """See `View.checks_said`."""

    @property
    def done(self) -> bool:
        """Whether the last step has passed."""
        return self.status.phase == Phase.DONE


@dataclass(slots=True)
class Draft:
    """A status under construction."""

    status: RolloutStatus
    now: float
    events: list[Event] = field(default_factory=list)

    def set(self, **fields: object) -> None:
        self.status = msgspec.structs.replace(self.status, **fields)

    def enter(self, phase: Phase) -> None:
        if self.status.phase != phase:
            self.set(phase=phase.value, phase_time=plain_time(self.now), phase_time_unix=int(self.now))

    def say(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append(Event(reason, message, warning))
