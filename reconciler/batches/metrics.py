"""Metrics of batches: verdicts, and what an AlterShield server was told about them."""

from prometheus_client import CollectorRegistry, Counter

from altershield.api.change_pod import PodState
from altershield.api.pod_verdicts import Verdict

UNCHECKED_ENDS = (PodState.PRE_FAILED, PodState.PRE_TIMEOUT, PodState.POST_FAILED, PodState.POST_TIMEOUT)
"""The ends of batches whose checks ended without a result."""


class BatchMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.verifications = Counter(
            "altershield_verifications",
            "Verdicts on pods. A pod can get two: one when its batch is done, and one when a person fails it later.",
            ["verdict"],
            registry=registry,
        )
        self.unchecked = Counter(
            "altershield_unchecked_pods",
            "Pods that count as passed although their checks ended without a result, by how their batch ended.",
            ["reason"],
            registry=registry,
        )
        self.skips = Counter(
            "altershield_skips",
            "Approvals that an AlterShield server was told of. `failed`: it was not told, or this is not known.",
            ["result"],
            registry=registry,
        )
        for verdict in Verdict:
            self.verifications.labels(verdict)
        for end in UNCHECKED_ENDS:
            self.unchecked.labels(end)
        for skipped in ("done", "failed"):
            self.skips.labels(skipped)
