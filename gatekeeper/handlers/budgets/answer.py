"""The response of a handler to a disruption, from the verdict of the budgets."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

from altershield.api.budgets import BREAK_GLASS_GROUP, Operation
from altershield.budgets.changes import NO_CHANGES, Changes
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption, Passed, Refused
from gatekeeper.budgets.judge import Verdict
from gatekeeper.errors import ReviewError
from gatekeeper.handlers.budgets.reasons import Reason
from gatekeeper.listers import Listers
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Cause, Denial, Response
from gatekeeper.texts import PAGE_WARNING, clean, warning

HANDLER_SECONDS = 4.0
"""The time of a handler. The API server waits for 5 seconds."""

_MAX_MESSAGE = 1024  # bytes
_MAX_WARNINGS = 8
_DISRUPTION_BUDGET = "DisruptionBudget"
"""The cause in a refused eviction, as the API server gives it for PodDisruptionBudgets."""


def has_budgets(request: Request[Any], listers: Listers) -> bool:
    """Whether there are budgets in the namespace of the request. ReviewError (503): the caches are not filled yet, so
    the failure policy of the webhook decides."""
    if not listers.budgets.filled(request.namespace):
        raise ReviewError("the caches of PodUnavailableBudgets and pods are not filled yet", 503)
    return listers.budgets.protects(request.namespace)


def disruption_of(
    request: Request[Any],
    operation: Operation,
    pod: Pod,
    *,
    changes: Changes = NO_CHANGES,
    generation: int = 0,
    restarts: tuple[str, ...] = (),
    request_name: str = "",
    container_ids: tuple[tuple[str, str], ...] = (),
) -> Disruption:
    """The disruption of `pod` by a request."""
    return Disruption(
        operation,
        pod,
        clean(request.user, _MAX_MESSAGE),
        BREAK_GLASS_GROUP in request.groups,
        request.dry_run,
        changes,
        generation,
        restarts,
        request_name,
        container_ids,
    )


def answer(listers: Listers, disruption: Disruption) -> Response | Awaitable[Response]:
    """The response to a disruption. Most requests are decided at once, by the caches."""
    verdict = listers.budgets.decide(disruption)
    return _judged(listers, disruption) if verdict is None else _response(disruption.operation, verdict)


def answer_by_name(
    listers: Listers, namespace: str, name: str, disruption: Callable[[Pod], Disruption]
) -> Response | Awaitable[Response]:
    """The response to a request that only names its pod. `disruption` makes the disruption of the pod. A request about
    a pod that does not exist passes, and fails later."""
    pod = listers.budgets.cached_pod(namespace, name)
    return answer(listers, disruption(pod)) if pod is not None else _read(listers, namespace, name, disruption)


async def _read(listers: Listers, namespace: str, name: str, disruption: Callable[[Pod], Disruption]) -> Response:
    pod = await listers.budgets.read_pod(namespace, name)
    return await _judged(listers, disruption(pod)) if pod is not None else NOTHING


async def _judged(listers: Listers, disruption: Disruption) -> Response:
    """The response to a disruption that takes I/O."""
    return _response(disruption.operation, await listers.budgets.judge(disruption))


def _response(operation: Operation, verdict: Verdict) -> Response:
    match verdict:
        case Passed(covered=False):
            return NOTHING
        case Passed(warnings, broken_glass, only_warned):
            reason = Reason.BREAK_GLASS if broken_glass else Reason.WARNED if only_warned else Reason.ADMITTED
            return Response(warnings=_warnings(warnings), reason=reason)
        case Refused(message, warnings, by_pdb):
            return _denied(operation, message, warnings, Reason.BLOCKED_BY_PDB if by_pdb else Reason.EXCEEDED)
        case _:
            return _denied(operation, verdict.message, (), Reason.BUSY)


@lru_cache(maxsize=256)  # `kubectl drain` repeats each eviction every five seconds
def _denied(operation: Operation, message: str, warnings: tuple[str, ...], reason: Reason) -> Response:
    """`kubectl drain` repeats an eviction after 429 only. There is no `retryAfterSeconds`: clients would repeat the
    request by themselves, up to ten times."""
    message = clean(message, _MAX_MESSAGE)
    if operation == Operation.EVICT:
        denial = Denial(message, "TooManyRequests", 429, (Cause(_DISRUPTION_BUDGET, message),))
    else:
        denial = Denial(message, "Forbidden")
    return Response(warnings=(*_warnings(warnings), PAGE_WARNING), denial=denial, reason=reason)


def _warnings(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(warning(f"AlterShield: {text}") for text in texts[:_MAX_WARNINGS])
