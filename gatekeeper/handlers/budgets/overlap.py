"""A new PodUnavailableBudget must not cover pods of another one: all budgets of a pod would have to agree."""

from enum import StrEnum

from altershield.api.budgets import PodUnavailableBudgetSpec
from gatekeeper.handler import handler
from gatekeeper.listers import Listers
from gatekeeper.request import Object, Request
from gatekeeper.response import NOTHING, Decision, Denial, Outcome, Response
from gatekeeper.texts import clean

_MAX_MESSAGE = 1024  # bytes


class Reason(StrEnum):
    OVERLAPS = "budget-overlaps"


class NewBudget(Object, frozen=True):
    """The fields of a budget that the handler reads."""

    spec: PodUnavailableBudgetSpec = PodUnavailableBudgetSpec()


@handler(reads=NewBudget, outcomes=(Outcome(Decision.DENIED, Reason.OVERLAPS),))
def deny(request: Request[NewBudget], listers: Listers) -> Response:
    """Refuse a budget with the target of another one, or that would cover a pod of another one now. Budgets that
    AlterShield made give way to it."""
    if request.user == listers.reconciler or not listers.budgets.filled(request.namespace):
        return NOTHING
    other = listers.budgets.overlapping(request.namespace, request.object.spec)
    if not other:
        return NOTHING
    text = f"PodUnavailableBudget {request.name}: {other}, and a pod can have one budget only"
    return Response(denial=Denial(clean(text, _MAX_MESSAGE), "Forbidden"), reason=Reason.OVERLAPS)
