"""PromQL that several dashboards use."""

from altershield.admission.registration import Feature
from altershield.admission.webhooks import VALIDATING
from altershield.workloads import ADAPTERS

REAL = 'dry_run!="true"'
"""Selects the requests that are no dry runs."""

JUDGED = 'webhook=~"v.*"'
"""Selects AlterShield's series of the validating webhooks, because only these deny."""

_KINDS = "|".join(adapter.resource.kind.lower() for adapter in ADAPTERS)
CLUSTER = 'cluster=~"$cluster"'
"""Selects the series of the chosen clusters, and with the default `.*` also series without this label."""

OURS = f'{CLUSTER}, namespace=~"$namespace"'
"""Selects the series of AlterShield's processes."""

HOOKS = f'{CLUSTER}, name=~"(m|v)({_KINDS})[.]kb[.]io"'
"""Selects API servers' series of AlterShield's webhooks for releases."""

_PROTECTING = "|".join(
    webhook.name.removeprefix("v").removesuffix(".kb.io")
    for webhook in VALIDATING
    if webhook.feature != Feature.RELEASES
)
PROTECTING_HOOKS = f'{CLUSTER}, name=~"v({_PROTECTING})[.]kb[.]io"'
"""Selects API servers' series of AlterShield's webhooks that protect pods and other objects from disruptions."""


def grown(counter: str, span: str) -> str:
    """PromQL for how much each series of an AlterShield counter grew in `span`.

    increase() ignores the first value of a series. But a new pod counts before its first scrape, above all after an
    outage. So the whole value of a series counts if the series did not exist in the `span` before. The condition on
    `up` excludes old values that only a newly started Prometheus has not seen before.
    """
    return (
        f"((max_over_time({counter}[{span}]) unless max_over_time({counter}[{span}] offset {span}) "
        f"and on (cluster) up offset {span}) or increase({counter}[{span}]))"
    )
