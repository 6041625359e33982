"""Which failed releases are to be expected: those whose call to a gatekeeper was lost with it."""

import collections
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CALL_FAILED = "failed calling webhook"
"""In the API server's message where a gatekeeper gave no answer."""

UNNOTICED_PER_KILL = 4
"""Releases that may fail since nobody has noticed yet. API servers keep their connections, so few calls need a new one
in the second until the node knows: mostly none, and more the busier the machine is."""


class Cause(enum.Enum):
    """Why a gatekeeper left a call unanswered."""

    UNDER_WAY = "it was killed while it was asked"
    UNNOTICED = "it had been killed: a new connection to it was made, or one was taken that was just ending"
    HUNG = "it hung"


@dataclass(frozen=True)
class Loss:
    """A call without an answer, made at `asked` by the loop's time."""

    asked: float
    cause: Cause


@dataclass(frozen=True)
class Sent:
    """A release's end: when it was due (the loop's time), its latency in seconds, why it failed (empty: it did not)."""

    due: float
    latency: float
    failure: str

    @property
    def ended(self) -> float:
        return self.due + self.latency


def explained(sent: Iterable[Sent], losses: Iterable[Loss]) -> dict[Sent, Cause]:
    """The failures that come of lost calls. A release fails of a call that was made while it was under way, and each
    call has one release."""
    left = sorted(losses, key=lambda loss: loss.asked)
    causes = {}
    for release in sorted(sent, key=lambda each: each.ended):
        if CALL_FAILED not in release.failure:
            continue
        loss = next((each for each in left if release.due <= each.asked <= release.ended), None)
        if loss is not None:
            left.remove(loss)
            causes[release] = loss.cause
    return causes


def wrong_with(failed: Iterable[Sent], causes: Mapping[Sent, Cause], kills: int) -> tuple[str, ...]:
    """Failures without a cause, and more than there should be because so many kills were not noticed yet."""
    wrong = [each.failure for each in failed if each not in causes]
    unnoticed = collections.Counter(causes.values())[Cause.UNNOTICED]
    if unnoticed > UNNOTICED_PER_KILL * kills:
        wrong.append(f"{unnoticed} releases failed as {kills} kills were not noticed yet: that is too many")
    return tuple(wrong)
