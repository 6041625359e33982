"""The pods that a budget lost although no gatekeeper was asked: which are new, and which the status remembers. Pure
functions.

A pod that a kubelet evicts stays as an object in the phase Failed. So a reconciler that starts finds it, too. The
status says which pods were reported.
"""

from collections.abc import Iterable, Mapping

import msgspec

from altershield.api.budgets import MAX_LOSSES, Loss, PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.api.meta import time_of
from altershield.budgets.coverage import Scales, protects
from altershield.budgets.index import Group
from kube_base.times import rfc3339, unix

REMEMBERED = 3600.0
"""Seconds for which the status remembers a lost pod. A pod that was lost earlier is not reported any more."""


def lost_pods(budget: PodUnavailableBudget, groups: Iterable[Group], scales: Scales, now: float) -> dict[str, Loss]:
    """The pods of a budget that exist and were taken by a kubelet or by the end of their node, by uid. `groups`: the
    pods of its namespace. Pods that were taken before the budget existed are left out."""
    begun = max(now - REMEMBERED, unix(budget.metadata.creation_timestamp))
    return {
        pod.uid: Loss(pod.name, rfc3339(pod.taken_at))
        for group in groups
        if protects(budget.spec, group.owner, group.labels, scales)
        for pod in group.pods.values()
        if pod.lost and pod.taken_at >= begun
    }


def reportable(
    status: PodUnavailableBudgetStatus, found: Mapping[str, Loss], recorded: Iterable[str]
) -> dict[str, Loss]:
    """The pods of `found` that are to be reported: those that the status does not remember, and whose disruption was
    not admitted. `recorded`: the uids of pods with a record. At most as many as the status has room for."""
    known = {*status.ungated_pods, *recorded}
    new = sorted(((uid, each) for uid, each in found.items() if uid not in known), key=lambda item: item[1].name)
    return dict(new[: MAX_LOSSES - len(status.ungated_pods)])


def remembered(status: PodUnavailableBudgetStatus, new: Mapping[str, Loss], now: float) -> PodUnavailableBudgetStatus:
    """The status that remembers the new losses, and no losses that are too old."""
    kept = {uid: each for uid, each in status.ungated_pods.items() if now - time_of(each.time, now) < REMEMBERED}
    return msgspec.structs.replace(status, ungated_pods={**kept, **new})
