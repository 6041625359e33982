"""Finds the failed releases that are expected: their call was lost because a gatekeeper was killed or hung."""

import collections
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CALL_FAILED = "failed calling webhook"
"""Part of the API server's message about a call without a usable response."""

UNNOTICED_PER_KILL = 4
"""How many releases may fail per kill because new connections still go to the killed gatekeeper. API servers keep their
connections, so few calls open a new one before the node notices the end: usually none, more on a busy machine."""


class Cause(enum.Enum):
    """Why a call got no response."""

    UNDER_WAY = "the gatekeeper was killed during the call"
    UNNOTICED = "the call used a new or closing connection to a gatekeeper that had been killed"
    HUNG = "the gatekeeper hung"


@dataclass(frozen=True)
class Loss:
    """A call without a response. `asked` is its loop time."""

    asked: float
    cause: Cause


@dataclass(frozen=True)
class Sent:
    """The result of a release: when it was due (loop time), its latency in seconds, and why it failed (empty: it did
    not fail)."""

    due: float
    latency: float
    failure: str

    @property
    def ended(self) -> float:
        return self.due + self.latency


def explained(sent: Iterable[Sent], losses: Iterable[Loss]) -> dict[Sent, Cause]:
    """The cause of each failure that a lost call explains. A lost call explains the failure of one release that was
    under way when the call was made."""
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
    """Messages about unexplained failures, and about too many failures on connections to killed gatekeepers."""
    wrong = [each.failure for each in failed if each not in causes]
    unnoticed = collections.Counter(causes.values())[Cause.UNNOTICED]
    if unnoticed > UNNOTICED_PER_KILL * kills:
        wrong.append(f"{unnoticed} releases failed on connections to {kills} killed gatekeepers: too many")
    return tuple(wrong)
