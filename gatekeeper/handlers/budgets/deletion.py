"""The deletion of a pod."""

from collections.abc import Awaitable

from altershield.api.budgets import Operation
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer, disruption_of, has_budgets
from gatekeeper.handlers.budgets.pod import ReviewedPod
from gatekeeper.handlers.budgets.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Response


@handler(reads=ReviewedPod, outcomes=OUTCOMES, seconds=HANDLER_SECONDS)
def judge(request: Request[ReviewedPod], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because an admitted deletion is recorded in its budget before the answer."""
    found = request.object
    if found.metadata.deletion_timestamp is not None or not has_budgets(request, listers):
        return NOTHING
    return answer(listers, disruption_of(request, Operation.DELETE, found.projection(request.namespace)))
