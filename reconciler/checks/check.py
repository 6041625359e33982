"""The protocol of a check of a batch. One file for each kind of check is beside this one.

The batch reconciler stores `ChangePod.status.checks[]` before each request to a check, and decides again with the
answer. So a check keeps no state of its own: its handle and the start time are in the ChangePod. A restart of the
reconciler resumes a check with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import CheckResult, FailedRule
from altershield.api.check_specs import CheckSpec, Phase


def entry_of(checks: Sequence[CheckResult], name: str, phase: Phase) -> CheckResult | None:
    """The entry of a check in a phase, or None if it has not begun."""
    return next((each for each in checks if (each.name, each.phase) == (name, phase)), None)


@dataclass(frozen=True, slots=True)
class Subject:
    """A batch, and a check of it in one phase. Times are Unix seconds."""

    change_pod: ChangePod
    release: ChangeWorkload
    check: CheckSpec
    phase: Phase
    started: float
    """When the check began: before it was started."""
    deadline: float
    old_pods: tuple[str, ...] = ()
    """Regular expressions of the names of the workload's pods that have other versions."""

    @property
    def entry(self) -> CheckResult | None:
        """The stored entry of the check in its phase."""
        return entry_of(self.change_pod.status.checks, self.check.name, self.phase)


@dataclass(frozen=True, slots=True)
class Started:
    """The check runs. `handle` identifies it (at most 1024 characters)."""

    handle: str
    unique: bool = field(default=False, compare=False)
    """A repeated start may find something else under the same name, so the handle is stored at once."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The start surely had no effect. It is repeated until the deadline."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """It is not known whether the start had an effect. It is repeated only if the check is `repeatable`."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class NotRepeated:
    """The check cannot be run again with its present handle. A new one is started."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """The check has no result yet. `reason`: why, if it is known."""

    reason: str = ""
    handle: str = ""
    """Replaces the handle of the check, if it is not empty."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The batch passes."""

    message: str = ""
    newest_rule: int = 0
    """When the newest rule of an AlterShield server that led to this result began, in Unix milliseconds by its clock;
    0: it is not known."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The batch fails."""

    reason: str
    newest_rule: int = 0
    """See `Pass`."""
    rules: tuple[FailedRule, ...] = ()
    """The rules of an AlterShield server that did not pass."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The check ends without a result. The policy says what this means."""

    reason: str


class Availability(Enum):
    """Whether a check can be asked now."""

    AVAILABLE = auto()
    NOT_CONFIGURED = auto()
    UNREACHABLE = auto()
    """The last requests got no answer, so that no request is sent for a while."""
    SWITCHED_OFF = auto()
    """The AlterShield server says that releases are not to be checked (its kill switch)."""


Result = Pass | Fail | Unknown
StartAnswer = Started | NotStarted | NotRepeated | Lost | Result
PollAnswer = Pending | Result


class Check(Protocol):
    """A kind of check. Its methods never raise: an error that a retry may mend is `Pending`, `NotStarted` or `Lost`,
    any other one is `Unknown`."""

    @property
    def availability(self) -> Availability:
        """Whether the check can be asked now."""
        ...

    @property
    def repeatable(self) -> frozenset[Phase]:
        """The phases in which a start may be repeated: it has no effect, or a second one finds the first one."""
        ...

    async def start(self, subject: Subject) -> StartAnswer:
        """Start the check."""
        ...

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Ask for the result. `last`: the deadline has come, so there is no later poll."""
        ...

    async def end(self, subject: Subject, handle: str) -> None:
        """Clean up after a check that has ended, with or without a result. It may be called more than once."""
        ...
