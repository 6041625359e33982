"""The budgets that the annotations `generate-pub` and `generate-pdb` ask for. Pure functions."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from altershield.api.annotations import GENERATE
from altershield.workloads.workload import Workload

_AMOUNT = re.compile("[0-9]{1,9}|([0-9]|[1-9][0-9]|100)%")
MAX_UNAVAILABLE, MIN_AVAILABLE = "maxUnavailable", "minAvailable"


class BudgetKind(StrEnum):
    """The kinds of budgets, as the annotations name them."""

    PUB = "pub"
    PDB = "pdb"


class Amount(NamedTuple):
    """A budget that the annotations ask for. `field` is `maxUnavailable` or `minAvailable`."""

    field: str
    amount: int | str


class Invalid(NamedTuple):
    """The annotations are invalid. `message`: why."""

    message: str


def wanted_amount(kind: BudgetKind, workload: Workload, default: Mapping[str, str]) -> Amount | Invalid | None:
    """The amount that a workload asks for. `default`: the annotations of its Namespace, as in `Workload.generates`.
    Annotations of the workload have precedence. None: no budget is asked for.

    If the annotations name no amount, it is `maxUnavailable` of the update strategy. If that is 0, the amount is 1,
    because 0 would block every drain: a rollout can start new pods before it stops old ones, but a drain cannot.
    """
    own = dict(workload.generates)
    value = own.get(kind, default.get(kind))
    if value is None or value == "false":
        return None
    if value != "true":
        return Invalid(f'{GENERATE}{kind} is "{value}": write "true" or "false"')
    amounts = _amounts(kind, own) or _amounts(kind, default)
    if not amounts:
        amount = workload.max_unavailable
        return Amount(MAX_UNAVAILABLE, 1 if amount in (0, "0%") else amount)
    if len(amounts) > 1:
        return Invalid(
            f"{GENERATE}{kind}-{MAX_UNAVAILABLE} and {GENERATE}{kind}-{MIN_AVAILABLE} are set: remove one of them"
        )
    ((field, text),) = amounts.items()
    if not _AMOUNT.fullmatch(text):
        return Invalid(f'{GENERATE}{kind}-{field} is "{text}": write a number of pods, or a share from 0% to 100%')
    return Amount(field, text if text.endswith("%") else int(text))


def _amounts(kind: BudgetKind, annotations: Mapping[str, str]) -> dict[str, str]:
    keys = {field: f"{kind}-{field}" for field in (MAX_UNAVAILABLE, MIN_AVAILABLE)}
    return {field: annotations[key] for field, key in keys.items() if key in annotations}
