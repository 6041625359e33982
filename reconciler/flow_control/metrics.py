"""Metrics of PodDeletionFlowControls, from the cache."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from altershield.api.flow_control import BreakerState, PodDeletionFlowControl
from altershield.flow_control.decision import Working

_MAX_FLOW_CONTROLS = 100
"""The maximum number of PodDeletionFlowControls with series. Each has a few."""


def families(policies: Sequence[PodDeletionFlowControl], now: float) -> Iterator[Metric]:
    """The state of each breaker, and the used share of the limits. Both follow from the status and the time, as in
    decisions. `now`: Unix seconds."""
    few = f"Of the first {_MAX_FLOW_CONTROLS} PodDeletionFlowControls by name. All replicas export it."
    breakers = GaugeMetricFamily(
        "altershield_deletion_breaker",
        f"1 for the state of the breaker, 0 for the others. Breakers of the mode Warn refuse nothing. {few}",
        labels=["flow_control", "mode", "state"],
    )
    used = GaugeMetricFamily(
        "altershield_deletion_limit_used_ratio",
        f"The used share of a limit, of the rule that is nearest to its limit; 1: the limit is reached. {few}",
        labels=["flow_control"],
    )
    warns = GaugeMetricFamily(
        "altershield_deletion_limit_warn_ratio",
        f"`warnPercent` of the spec, as a share of the limit. {few}",
        labels=["flow_control"],
    )
    for policy in sorted(policies, key=lambda each: each.metadata.name)[:_MAX_FLOW_CONTROLS]:
        name, work = policy.metadata.name, Working(policy, now)
        for state in BreakerState:
            breakers.add_metric([name, policy.spec.mode, state], work.breaker.state == state)
        used.add_metric([name], max((tally.percent() for tally in work.tallies), default=0) / 100)
        warns.add_metric([name], policy.spec.warn_percent / 100)
    yield from (breakers, used, warns)
