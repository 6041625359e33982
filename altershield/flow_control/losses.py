"""The pods that were lost although no gatekeeper was asked: a kubelet evicted them, or their node was shut down. They
are counted like deletions, once each. Pure functions."""

import msgspec

from altershield.api.flow_control import MAX_LOST, FlowControlStatus, LostPod
from altershield.api.meta import time_of
from altershield.flow_control.decision import Working
from altershield.flow_control.deletion import Deletion
from kube_base.times import rfc3339

REMEMBERED = 3600
"""Seconds for which the status remembers a lost pod. A pod that was lost earlier is not counted any more."""


def count_lost(work: Working, lost: list[Deletion]) -> tuple[FlowControlStatus, list[str]]:
    """Count the lost pods that the status does not remember, and that no request asked to delete. Return the status,
    and the names of the pods that were counted: at most as many as the status has room for."""
    known = {
        uid: each
        for uid, each in work.policy.status.ungated_pods.items()
        if work.now - time_of(each.time, work.now) < REMEMBERED
    }
    counted = []
    for each in lost:
        if each.uid in known or each.uid in work.pending or len(known) >= MAX_LOST:
            continue
        work.count(each)
        work.pending.pop(each.uid, None)
        known[each.uid] = LostPod(each.namespace, each.name, rfc3339(work.now))
        counted.append(f"{each.namespace}/{each.name}")
    return msgspec.structs.replace(work.status(), ungated_pods=known), sorted(counted)
