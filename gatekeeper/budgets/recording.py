"""The records of disruptions in the status of a budget: those of the requests that it admits, and their removal. The
functions are pure."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from altershield.api.budgets import Operation, PodUnavailableBudget
from altershield.budgets.decision import Lister, charge
from altershield.budgets.records import without_record
from altershield.budgets.steps import Disruption
from gatekeeper.records.shared_status import Decision


class Recorded(NamedTuple):
    """The budget has a record of the request."""

    sole: bool
    """The record is new, and no other request of this process asked for it. So no other request has passed because of
    it."""
    excess: str
    """Why the budget would refuse the request without break glass; empty: it would not."""


def record(
    budget: PodUnavailableBudget, disruptions: Sequence[Disruption], lister: Lister, now: float
) -> Decision[PodUnavailableBudget, Recorded | None]:
    """Record the requests that the budget admits. None: the request has to be decided again, because the budget has
    changed. `now`: Unix seconds by the API server's clock."""
    status, excesses = charge(budget, disruptions, lister, now)
    known = budget.status.disrupted_pods.keys() | budget.status.unavailable_pods.keys()
    asked = Counter(each.pod.uid for each in disruptions)
    answers = [
        Recorded(asked[uid] == 1 and uid not in known, excess) if excess is not None else None
        for uid, excess in zip((each.pod.uid for each in disruptions), excesses, strict=True)
    ]
    return Decision(answers, msgspec.structs.replace(budget, status=status) if any(answers) else None)


def remove(
    stored: PodUnavailableBudget, uid: str, operation: Operation, budget: PodUnavailableBudget
) -> PodUnavailableBudget | None:
    """Remove the record of a request that another budget refused. `stored`: the budget with the record. If the budget
    has changed since, the record stays until it expires, because another request may have passed because of it."""
    if budget.metadata.resource_version != stored.metadata.resource_version:
        return None
    return msgspec.structs.replace(budget, status=without_record(budget.status, uid, operation))
