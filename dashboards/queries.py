"""PromQL that more than one dashboard needs."""

from altershield.workloads import ADAPTERS

JUDGED = 'webhook=~"v.*"'
"""Our own series: those of all webhooks that deny."""

_KINDS = "|".join(adapter.resource.kind.lower() for adapter in ADAPTERS)
HOOKS = f'name=~"(m|v)({_KINDS})[.]kb[.]io"'
"""API servers' series: those of our webhooks."""


def grown(counter: str, span: str) -> str:
    """How much each series of a counter of ours grew in `span`. A new pod counts before it is scraped for the first
    time, most of all after an outage. increase() does not see that, hence all that a series shows which was not there
    in the `span` before; `up` keeps a Prometheus that was just started from telling what is old."""
    return (
        f"((max_over_time({counter}[{span}]) unless max_over_time({counter}[{span}] offset {span}) "
        f"and on () up offset {span}) or increase({counter}[{span}]))"
    )
