"""Deletions and evictions of pods are counted in PodDeletionFlowControls. Those beyond a limit are refused.

A deletion that a PodUnavailableBudget refuses must not be counted. So `count_deletion` and `count_eviction` run after
the handlers of budgets. A deletion that is refused here must not take a slot of a budget. So the two other handlers run
before those of budgets. They count nothing while the deletion is within the limits.
"""

import secrets
import time
from collections.abc import Awaitable
from typing import Any

from altershield.api.budgets import BREAK_GLASS_GROUP
from altershield.budgets.pods import Pod
from altershield.flow_control.deletion import Deletion, Operation, exempt
from altershield.flow_control.texts import Hint
from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.eviction import Eviction
from gatekeeper.handlers.budgets.pod import ReviewedPod
from gatekeeper.handlers.flow_control.reasons import OUTCOMES, Reason
from gatekeeper.listers import Listers
from gatekeeper.records.flow_controls import Decided
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Denial, Response
from gatekeeper.texts import PAGE_WARNING, advice, clean, warning
from kube_base.errors import ReportedError

_SECONDS = 4.5
"""The time of all handlers of a request. The API server waits for 5 seconds."""
_LEAST = 0.5  # seconds for a decision, even if less time is left
_MAX_MESSAGE = 1024  # bytes
_MAX_NAME = 253  # bytes
_TAINT = "DeletionByTaintManager"


@handler(reads=ReviewedPod, outcomes=OUTCOMES, seconds=_SECONDS)
def refuse_deletion_early(request: Request[ReviewedPod], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because a refusal must not rest on an old cache, and because it may open a breaker."""
    deletion = _deletion(request, listers)
    if deletion is None or not listers.flow_controls.would_refuse(deletion):
        return NOTHING
    return _decided(request, deletion, listers)


@handler(reads=ReviewedPod, outcomes=OUTCOMES, seconds=_SECONDS)
def count_deletion(request: Request[ReviewedPod], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because a deletion is admitted only after its count is stored in the cluster."""
    deletion = _deletion(request, listers)
    return _decided(request, deletion, listers) if deletion is not None else NOTHING


@handler(reads=Eviction, outcomes=OUTCOMES, seconds=_SECONDS)
def refuse_eviction_early(request: Request[Eviction], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O for the reasons of `refuse_deletion_early`, and because the request does not contain the pod."""
    return _evicted(request, listers, early=True) if _has_policies(listers) else NOTHING


@handler(reads=Eviction, outcomes=OUTCOMES, seconds=_SECONDS)
def count_eviction(request: Request[Eviction], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O for the reason of `count_deletion`, and because the request does not contain the pod."""
    return _evicted(request, listers, early=False) if _has_policies(listers) else NOTHING


def _deletion(request: Request[ReviewedPod], listers: Listers) -> Deletion | None:
    """The deletion that is to be decided; None: no policy counts it."""
    if not _has_policies(listers):
        return None
    pod = request.object
    projection = request.once(_projection)
    if not projection.judged:
        return None
    tainted = any(
        each.type == "DisruptionTarget" and each.status == "True" and each.reason == _TAINT
        for each in pod.status.conditions or ()
    )
    return _deletion_of(request, projection, Operation.DELETE, by_taint_manager=tainted)


async def _evicted(request: Request[Eviction], listers: Listers, *, early: bool) -> Response:
    """The response to an eviction. `early`: it is not counted, and only a refusal gets a response."""
    budgets = listers.budgets
    try:
        pod = budgets.cached_pod(request.namespace, request.name)
        pod = pod or await budgets.read_pod(request.namespace, request.name)
    except ReportedError:
        refusal = listers.flow_controls.decide_unread(f"{request.namespace}/{request.name}")
        return _refused(refusal, 429) if refusal is not None else NOTHING
    if pod is None or not pod.judged:  # the API server answers with 404, or no policy counts the pod
        return NOTHING
    deletion = _deletion_of(request, pod, Operation.EVICT)
    if early and not listers.flow_controls.would_refuse(deletion):
        return NOTHING
    return await _decided(request, deletion, listers)


def _has_policies(listers: Listers) -> bool:
    """Whether there are policies. ReviewError (503): the caches are not filled yet, so the failure policy of the
    webhook decides."""
    if not listers.flow_controls.filled:
        raise ReviewError("the caches of PodDeletionFlowControls and namespaces are not filled yet", 503)
    return listers.flow_controls.exist


def _projection(request: Request[ReviewedPod]) -> Pod:
    return request.object.projection(request.namespace)


def _claim(request: Request[Any]) -> str:
    """A random identifier of the request."""
    return secrets.token_hex(8)


def _deletion_of(request: Request[Any], pod: Pod, operation: Operation, *, by_taint_manager: bool = False) -> Deletion:
    break_glass = BREAK_GLASS_GROUP in request.groups
    return Deletion(
        uid=pod.uid,
        namespace=request.namespace,
        name=pod.name,
        operation=operation,
        by=clean(request.user, _MAX_NAME),
        claim=request.once(_claim),
        labels=pod.labels,
        exempt=exempt(break_glass=break_glass, by_taint_manager=by_taint_manager, ready=pod.ready),
        break_glass=break_glass,
        dry_run=request.dry_run,
    )


async def _decided(request: Request[Any], deletion: Deletion, listers: Listers) -> Response:
    left = request.received + _SECONDS - time.time()
    found = await listers.flow_controls.decide(deletion, max(_LEAST, left))
    if found is None:
        return NOTHING
    if found.refusal:
        return _refused(found, deletion.code)
    warnings = tuple(map(_warning, found.hints))
    if deletion.break_glass:
        note = warning("AlterShield: break glass: this deletion passes all limits, and your name is recorded")
        return Response(warnings=(note, *warnings), audit={"break-glass": found.policy}, reason=Reason.BREAK_GLASS)
    return Response(warnings=warnings, reason=Reason.COUNTED)


def _refused(found: Decided, code: int) -> Response:
    message = clean(found.refusal, _MAX_MESSAGE)
    denial = Denial(message=message, reason="TooManyRequests" if code == 429 else "Forbidden", code=code)
    reason = Reason.NOT_COUNTED if found.busy else Reason.BEYOND_LIMIT
    warnings = (*map(_warning, found.hints), PAGE_WARNING)
    return Response(denial=denial, warnings=warnings, audit={"flow-control": found.policy}, reason=reason)


def _warning(hint: Hint) -> str:
    text = f"AlterShield: {hint.text}"
    return advice(text, hint.command) if hint.command else warning(text)
