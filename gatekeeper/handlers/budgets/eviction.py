"""The eviction of a pod. The API server calls the webhook before it reads the pod, and before it checks
PodDisruptionBudgets."""

from collections.abc import Awaitable

import msgspec

from altershield.api.budgets import Operation
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer_by_name, disruption_of, has_budgets
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
def judge(request: Request[Eviction], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because the request does not contain the pod, which the cache may not have yet, and because an
    admitted eviction is recorded in its budget before the answer."""
    if not has_budgets(request, listers):
        return NOTHING

    def disruption(pod: Pod) -> Disruption:
        return disruption_of(request, Operation.EVICT, pod)

    return answer_by_name(listers, request.namespace, request.name, disruption)
