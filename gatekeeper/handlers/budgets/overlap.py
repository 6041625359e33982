"""A new PodUnavailableBudget must not cover pods of another one: a disruption would need the consent of both."""

from enum import StrEnum

from altershield.api.budgets import PodUnavailableBudgetSpec
from altershield.api.pages import DENIED
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
    """Deny a budget with the target of another budget, or that covers a pod of another budget now. Budgets that
    AlterShield generated do not count: the reconciler deletes them."""
    if request.user == listers.reconciler or not listers.budgets.filled(request.namespace):
        return NOTHING
    other = listers.budgets.overlapping(request.namespace, request.object.spec)
    if not other:
        return NOTHING
    text = (
        f"AlterShield: PodUnavailableBudget {request.name} is not created: PodUnavailableBudget {other}; change that "
        f"budget instead, or delete it first; see {DENIED}"
    )
    return Response(denial=Denial(clean(text, _MAX_MESSAGE), "Forbidden"), reason=Reason.OVERLAPS)
