"""The deletion of a pod."""

from altershield.api.budgets import Operation
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer, concerns
from gatekeeper.handlers.budgets.pod import ReviewedPod
from gatekeeper.handlers.budgets.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Response


@handler(reads=ReviewedPod, outcomes=OUTCOMES, seconds=HANDLER_SECONDS)
async def judge(request: Request[ReviewedPod], listers: Listers) -> Response:
    """It does I/O because an admitted deletion is recorded in its budget before the answer."""
    found = request.object
    if found.metadata.deletion_timestamp is not None or not concerns(request, listers):
        return NOTHING
    return await answer(request, listers, Operation.DELETE, found.projection(request.namespace))
