"""What a release in steps waits for before a step: asked when it is admitted, before its first pod, and by the
reconciler before each step. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from altershield.api.check_specs import BEFORE_STEP
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_WINDOWS
from altershield.api.rollout import WaitingFor
from altershield.gates.release import Closed

_GATES = {
    RELEASE_WINDOWS.kind: WaitingFor.WINDOW,
    RELEASE_FREEZES.kind: WaitingFor.FREEZE,
    RELEASE_LIMITS.kind: WaitingFor.LIMIT,
}


class HasPhase(Protocol):
    """The part of a check that this module reads. The phase may be one of a newer release of AlterShield."""

    @property
    def phase(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Waits:
    """What a release waits for before its steps. With anything to wait for, it is held before the step: at 0 pods
    before the first one, else at the pods of the step before."""

    phases: tuple[str, ...] = ()
    """The phases of checks that run before a step, in their order."""
    passed: frozenset[tuple[str, int]] = frozenset()
    """The phases of which all checks have passed, with the number of the step."""
    begin: tuple[WaitingFor, ...] = ()
    """The closed gates for which it waits before its first step."""
    go_on: tuple[WaitingFor, ...] = ()
    """The closed gates for which it waits before a later step."""

    def before(self, step: int, *, first: bool) -> tuple[WaitingFor, ...]:
        """What the release waits for before the step. `first`: no step was taken before it."""
        closed = self.begin if first else self.go_on
        return (*closed, *(WaitingFor.CHECK,) * bool(self.due(step, first=first)))

    def due(self, step: int, *, first: bool) -> str:
        """The phase of the checks that have to pass next; empty if none has to."""
        wanted = (each for each in self.phases if first or each != BEFORE_STEP[0])
        return next((each for each in wanted if (each, step) not in self.passed), "")


def waits_of(checks: Iterable[HasPhase], passed: Iterable[tuple[str, int]] = ()) -> Waits:
    """What a release with these checks waits for."""
    phases = {each.phase for each in checks}
    return Waits(tuple(each for each in BEFORE_STEP if each in phases), frozenset(passed))


def for_gates(closed: Iterable[Closed]) -> tuple[WaitingFor, ...]:
    """What a release waits for while these gates are closed."""
    return tuple(dict.fromkeys(_GATES[each.kind] for each in closed if each.kind in _GATES))


NO_WAITS = Waits()
