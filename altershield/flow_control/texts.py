"""The texts of refusals and of their warnings.

The message of a refusal stays the same as long as its cause stays the same, because controllers write it into Events.
The warnings have the figures that change.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from altershield.api.flow_control import MAX_PENDING, Breaker, BreakerMode, Source
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.flow_control.rules import Rule
from altershield.flow_control.windows import Tally
from kube_base.times import rfc3339

_KIND = POD_DELETION_FLOW_CONTROLS.kind
_SOURCES = 3  # that a warning names


class Hint(NamedTuple):
    """A warning. A text with a command ends with it, so that people can paste it."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text


def used(policy: str, rule: Rule) -> str:
    return f"{_KIND} {policy}: {rule.limit} of {rule.limit} pod deletions in {rule.interval} are used"


def is_open(policy: str, breaker: Breaker) -> str:
    cause = f"rule {breaker.rule}" if breaker.rule else f"opened by {breaker.opened_by}"
    return f"{_KIND} {policy} is open since {breaker.since} ({cause})"


def half_open(policy: str, passing: int) -> str:
    return f"{_KIND} {policy}: {passing} of {passing} pod deletions of the half-open breaker are used"


def too_many_pending(policy: str) -> str:
    return f"{_KIND} {policy}: {MAX_PENDING} pod deletions wait to be confirmed"


def busy(policy: str) -> str:
    return f"{_KIND} {policy} is busy with other requests: try again"


def not_counted(policy: str) -> Hint:
    return Hint(f"{_KIND} {policy} cannot be written now, so this deletion is not counted (onError: Allow)")


def would_refuse(refusal: str) -> Hint:
    return Hint(f"the deletion passes, but would be refused in the mode Enforce: {refusal}")


def not_refused(refusal: str) -> Hint:
    return Hint(f"the deletion passes and is counted, although it is beyond a limit: {refusal}")


def near(policy: str, tally: Tally) -> Hint:
    rule = tally.rule
    return Hint(f"{_KIND} {policy}: {tally.used} of {rule.limit} pod deletions in {rule.interval} are used")


def about_limit(policy: str, full: Sequence[Tally], sources: Sequence[Source], *, opens: bool) -> Iterator[Hint]:
    """The warnings of a deletion beyond limits."""
    times = [tally.free_at() for tally in full]
    if opens:
        yield Hint("this deletion opens the breaker: all counted deletions are refused from now on")
    elif None in times:
        yield Hint("a limit is 0, so no deletion passes")
    else:
        latest = max((time for time in times if time is not None), default=0)
        yield Hint(f"the next deletion passes at {rfc3339(latest)}")
    yield from _ways_out(policy, sources)


def about_breaker(policy: str, breaker: Breaker, mode: BreakerMode, sources: Sequence[Source]) -> Iterator[Hint]:
    """The warnings of a deletion that an open breaker refuses."""
    if mode == BreakerMode.AUTO:
        yield Hint(f"the breaker lets some deletions pass from {breaker.until}")
    yield Hint(
        "to let deletions pass again, a user with the ClusterRole altershield-breaker runs",
        f"altershield breaker reset {policy}",
    )
    yield from _ways_out(policy, sources)


def _ways_out(policy: str, sources: Sequence[Source]) -> Iterator[Hint]:
    if sources:
        most = ", ".join(f"{each.by} ({each.count})" for each in sources[:_SOURCES])
        yield Hint(f"most deletions come from {most}")
    yield Hint(
        "to raise a limit, or to exempt pods by spec.whiteListSelector, an administrator runs",
        f"kubectl edit {POD_DELETION_FLOW_CONTROLS.plural} {policy}",
    )
