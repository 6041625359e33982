"""A release begins only while no gate is closed for it: release windows, freezes and limits."""

from collections.abc import Awaitable

from altershield.api.pages import GATES
from altershield.gates import texts
from altershield.gates.overrides import Asked
from altershield.gates.release import Closed
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.closed import asked_for, can_hold, closed_for, judgeable
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.handlers.releases.texts import namespace_option, rollback_command
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Actor, Cause, Decision, Denial, Outcome, Response
from gatekeeper.texts import clean, warning
from kube_base.times import rfc3339

_MAX_NAME = 253  # bytes
_MAX_MESSAGE = 1024  # bytes
_MAX_CAUSES = 8
_MAX_WARNINGS = 8
HANDLER_SECONDS = 4.0
"""The time of the handler. The API server waits for 5 seconds."""


@handler(
    reads=Workload,
    outcomes=(
        Outcome(Decision.DENIED, Reason.GATE_CLOSED),
        Outcome(Decision.DENIED, Reason.NOT_RECORDED),
        Outcome(Decision.ALLOWED, Reason.OVERRIDDEN, bypassed_by=(Actor.SERVICE_ACCOUNT, Actor.USER)),
    ),
    seconds=HANDLER_SECONDS,
)
def deny_closed(change: Change, listers: Listers) -> Response | Awaitable[Response]:
    """Deny a release while a gate is closed for it. Going back to the version before is always possible, except that a
    client may not repeat its own old values over a version that succeeded, if a FieldGuard says so.

    I/O: the use of a ReleaseOverride is recorded before the release is admitted, so that it is used no more often than
    it says. Only a release that an override lets pass waits for this.

    ReviewError (503): the caches of gates are not filled yet, so the failure policy of the webhook decides.
    """
    closed = closed_for(change, listers)
    if not closed:
        return NOTHING
    enforced = tuple(each for each in closed if each.enforced)
    if not enforced:
        return Response(warnings=tuple(map(_only_warns, closed[:_MAX_WARNINGS])))
    version = released_version(change)
    asked = asked_for(change, version)
    if listers.overrides.match(enforced, asked, change.received):
        return _overridden(change, listers, enforced, asked)
    if can_hold(change, listers, enforced):  # `steps.deny_unheld` denies it if it is not held
        return Response(
            warnings=tuple(warning(f"AlterShield: it begins by itself: {texts.sentence(e)}") for e in enforced)
        )
    return _denied(change, listers, enforced, version)


async def _overridden(change: Change, listers: Listers, closed: tuple[Closed, ...], asked: Asked) -> Response:
    """Record the use of the overrides, and admit the release."""
    passed = await listers.overrides.use(closed, asked, change.received, dry_run=change.dry_run)
    if passed is None:  # another gatekeeper recorded the last use meanwhile
        return _denied(change, listers, closed, asked.version)
    if passed.problem:
        text = f"AlterShield: {change.kind} {clean(change.name, _MAX_NAME)}: {passed.problem}"
        denial = Denial(clean(text, _MAX_MESSAGE), "TooManyRequests", 429)
        return Response(audit={"reason": denial.message}, denial=denial, reason=Reason.NOT_RECORDED)
    names = ", ".join(passed.overrides)
    gates = ", ".join(map(texts.named, closed))
    return Response(
        warnings=(warning(f"AlterShield: ReleaseOverride {names} lets this release pass {gates}"),),
        audit={"override": names, "passed": clean(gates, _MAX_MESSAGE)},
        reason=Reason.OVERRIDDEN,
    )


def _denied(change: Change, listers: Listers, enforced: tuple[Closed, ...], version: str) -> Response:
    message = _message(change, enforced)
    opens_at = listers.gates.opens_at(judgeable(change, listers), change.received)
    return Response(
        warnings=_advice(change, enforced),
        audit={"version": version, "reason": message},
        denial=Denial(message, "Forbidden", causes=_causes(enforced, opens_at)),
        reason=Reason.GATE_CLOSED,
    )


def _only_warns(closed: Closed) -> str:
    otherwise = "" if closed.only_warns else "with mode enforce: "
    return warning(f"AlterShield: {otherwise}{texts.sentence(closed)}")


def _message(change: Change, closed: tuple[Closed, ...]) -> str:
    how = "with this change" if closed[0].rule else "now"
    text = f"AlterShield: {change.kind} {clean(change.name, _MAX_NAME)} may not be released {how}: "
    others = texts.others(closed)
    return clean(text + texts.sentence(closed[0]) + (f"; {others}" if others else ""), _MAX_MESSAGE)


def _advice(change: Change, closed: tuple[Closed, ...]) -> tuple[str, ...]:
    command = f"altershield gates{namespace_option(change)} {change.kind}/{clean(change.name, _MAX_NAME)}"
    on_purpose = " on purpose" if any(each.judges_back for each in closed) else ", which is always possible"
    questions = []
    if not all(each.rule for each in closed):
        questions.append(f"to see what is closed and until when, run: {command}")
    if any(each.rule for each in closed):
        questions.append("to ask whether another manifest may be released, run: altershield gates -f FILE")
    return (
        *(warning(f"AlterShield: {texts.sentence(each)}") for each in closed[1:_MAX_CAUSES]),
        *map(warning, questions),
        warning(f"to let one release pass, somebody with the right creates a ReleaseOverride: see {GATES}#overrides"),
        warning(f"to go back to the version before{on_purpose}, run: {rollback_command(change)}"),
        warning(f"this page explains release gates: {GATES}"),
    )


def _causes(closed: tuple[Closed, ...], opens_at: float) -> tuple[Cause, ...]:
    """One for each gate, and the time at which the release may begin, if it is known."""
    found = [Cause(each.kind, texts.sentence(each), f"{each.namespace}/{each.name}") for each in closed[:_MAX_CAUSES]]
    if opens_at:
        found.append(Cause("OpensAt", rfc3339(opens_at)))
    return tuple(found)
