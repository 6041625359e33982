"""The eviction of a pod. The API server asks before it reads the pod, and before it asks PodDisruptionBudgets."""

import msgspec

from altershield.api.budgets import Operation
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer, concerns
from gatekeeper.handlers.budgets.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.request import Object, Request
from gatekeeper.response import NOTHING, Response


class _Options(msgspec.Struct, frozen=True, rename="camel"):
    dry_run: tuple[str, ...] | None = None


class Eviction(Object, frozen=True, rename="camel"):
    """The fields of an Eviction that the handler reads."""

    delete_options: _Options | None = None

    @property
    def dry_run(self) -> bool:
        return self.delete_options is not None and bool(self.delete_options.dry_run)


@handler(reads=Eviction, outcomes=OUTCOMES, seconds=HANDLER_SECONDS)
async def judge(request: Request[Eviction], listers: Listers) -> Response:
    """It does I/O because the request lacks the pod, which the cache may not have yet, and because an admitted eviction
    is recorded in its budget before the answer."""
    if not concerns(request, listers):
        return NOTHING
    pod = await listers.budgets.pod(request.namespace, request.name)
    if pod is None:
        return NOTHING  # the API server answers with 404
    return await answer(request, listers, Operation.EVICT, pod, dry_run=request.object.dry_run)
