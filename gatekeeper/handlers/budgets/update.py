"""Updates of a pod, and the subresource `resize`."""

from collections.abc import Awaitable

from altershield.api.budgets import Operation
from altershield.budgets.changes import changes
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer, disruption_of, has_budgets
from gatekeeper.handlers.budgets.pod import ChangedPod
from gatekeeper.handlers.budgets.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Response


@handler(reads=ChangedPod, outcomes=OUTCOMES, seconds=HANDLER_SECONDS)
def judge(request: Request[ChangedPod], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because an admitted change is recorded in its budget before the answer."""
    before = request.old_object
    if before is None or before.metadata.deletion_timestamp is not None:
        return NOTHING
    if not has_budgets(request, listers):
        return NOTHING
    old, new = before.projection(request.namespace), request.object.projection(request.namespace)
    made = changes(old, new, before.spec, request.object.spec)
    if not made.possible:
        return NOTHING
    generation = request.object.metadata.generation
    return answer(listers, disruption_of(request, Operation.UPDATE, old, changes=made, generation=generation))
