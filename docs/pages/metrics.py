"""The metrics of all components, read from the registries that Prometheus scrapes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec
from kubernetes_asyncio.client import Configuration
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from altershield import options
from altershield.api import labels, names
from altershield.api.kinds import ChangeWorkload, ChangeWorkloadSpec, ChangeWorkloadStatus, WorkloadState
from altershield.api.meta import ObjectMeta
from altershield.api.views import Deployment, Namespace
from altershield.kube.client import Client
from certgen import metrics as of_certgen
from certgen.keeper import Keeper
from certgen.lifetimes import Lifetimes
from certgen.settings import Settings
from docs.pages.markdown import GENERATED, table
from gatekeeper import metrics as of_gatekeeper
from gatekeeper.tls import Certificate
from gatekeeper.view import caches
from reconciler.caches import Caches
from reconciler.manager import Manager, Options

OPEN_LABELS = {
    ("altershield_build_info", "version"): "of AlterShield",
    ("altershield_release_entered_timestamp_seconds", "namespace"): "the Deployment's",
    ("altershield_release_entered_timestamp_seconds", "deployment"): "its name",
    ("altershield_release_entered_timestamp_seconds", "version"): "the release's, 32 hex digits",
    ("altershield_release_entered_timestamp_seconds", "state"): "as in `altershield_releases`, but for `Success`",
    ("altershield_release_entered_timestamp_seconds", "by"): "whose verdict failed it: `person`, `server`, or empty",
}
"""Labels whose values are not all there from the start, and what they are."""

_TITLES = {"gatekeeper": "Gatekeeper", "reconciler": "Reconciler", "certgen": "certgen"}
_ALL = "All components"

_HEAD = f"""\
# Metrics

{GENERATED}

Each container serves them as `/metrics` on its plain port: gatekeeper 8080, reconciler 8081, certgen 8082. Every
series exists from the start, and no label takes a value from a request. Times are Unix seconds. The alerts that watch
them have their [runbooks](../runbooks).

What a container counts before Prometheus has scraped it once, `rate()` and `increase()` do not see. After an outage
that is what matters most: a new leader's first look finds all that went by. So where single events count,
[alerts](../../charts/altershield/files/rules/altershield.yaml) and dashboards add all that a new series shows.

How often API servers went on without us, they count themselves: `apiserver_admission_webhook_fail_open_count`, with
`name` `mdeployment.kb.io` or `vdeployment.kb.io`. They show it from the first time on only.
"""


@contextlib.asynccontextmanager
async def registries() -> AsyncIterator[dict[str, CollectorRegistry]]:
    """Those of components put together as in production but not started; nothing is connected to."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        gatekeeper = of_gatekeeper.Metrics(Certificate(Path(), Path()))
        gatekeeper.observe(client, caches(client, names.SYSTEM_NAMESPACE))
        reconciler = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="",
                start_timeout=options.START_TIMEOUT,
                batch_wait=options.BATCH_WAIT,
                pre_timeout=options.PRE_TIMEOUT,
                post_timeout=options.POST_TIMEOUT,
                lease_duration=options.LEASE_DURATION,
                metrics_port=0,
            ),
        )
        certgen = of_certgen.Metrics()
        settings = Settings(names.SYSTEM_NAMESPACE, "", "", (), Lifetimes())
        certgen.observe(client, Keeper(client, settings, certgen).informers)
        _release(reconciler.caches)
        yield {
            "gatekeeper": gatekeeper.registry,
            "reconciler": reconciler.metrics.registry,
            "certgen": certgen.registry,
        }


def page() -> str:
    return asyncio.run(_page())


async def _page() -> str:
    async with registries() as found:
        metrics = {component: {metric.name: metric for metric in found[component].collect()} for component in _TITLES}
    shared = [name for name in metrics["gatekeeper"] if all(name in each for each in metrics.values())]
    sections = [_section(_ALL, [[each[name] for each in metrics.values()] for name in shared])]
    for component, title in _TITLES.items():
        own = [[metric] for name, metric in metrics[component].items() if name not in shared]
        sections.append(_section(title, own))
    return "\n".join([_HEAD, *sections])


def _section(title: str, families: Iterable[list[Metric]]) -> str:
    rows = [_row(family) for family in sorted(families, key=lambda family: family[0].name)]
    return f"## {title}\n\n{table(('metric', 'type, unit', 'labels', 'meaning'), rows)}"


def _row(family: list[Metric]) -> tuple[str, ...]:
    """One line about a metric, from all the registries that have it."""
    metric = family[0]
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    unit = "Unix seconds" if "_timestamp_" in name else "seconds" if name.endswith("_seconds") else ""
    values: dict[str, dict[str, None]] = {}
    for sample in (sample for each in family for sample in each.samples):
        for label, value in sample.labels.items():
            values.setdefault(label, {})[value] = None
    bounds = list(values.pop("le", {}))
    buckets = f" Buckets: {bounds[0]} to {bounds[-2]}." if bounds else ""
    shown = [
        f"`{label}`: {OPEN_LABELS.get((metric.name, label)) or ', '.join(f'`{value}`' for value in known)}"
        for label, known in values.items()
    ]
    type_ = f"{metric.type}, {unit}" if unit else metric.type
    return f"`{name}`", type_, "<br>".join(shown), metric.documentation + buckets


def _release(cached: Caches) -> None:
    """Let there be one release that has not succeeded: only such ones have a series each."""
    version, namespace = "0" * 32, "shop"
    name = names.change_workload_name("web", version)
    own = {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED}
    owner = {"kind": "Deployment", "name": "web", "uid": "uid", "controller": True}
    governed = {labels.GOVERNED: labels.GOVERNED_VALUE}
    of_namespace = {"name": namespace, "resourceVersion": "1", "labels": governed}
    of_deployment = {"name": "web", "namespace": namespace, "uid": "uid", "resourceVersion": "1", "labels": own}
    of_record = {"name": name, "namespace": namespace, "resourceVersion": "1", "ownerReferences": [owner]}
    cached.namespaces.observe(msgspec.convert({"metadata": of_namespace}, Namespace))
    cached.deployments.observe(msgspec.convert({"metadata": of_deployment}, Deployment))
    cached.change_workloads.observe(
        ChangeWorkload(
            msgspec.convert(of_record, ObjectMeta),
            ChangeWorkloadSpec(name, "web", "web", "1", 1, 60, "", 0),
            ChangeWorkloadStatus(status=WorkloadState.RUNNING),
        )
    )
