"""The metrics of all components, read from the registries that Prometheus scrapes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from altershield.admission.webhooks import MUTATING, VALIDATING
from altershield.api import labels, names
from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.api.change_workload import ChangeWorkloadSpec, ChangeWorkloadStatus, WorkloadRef, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.flow_control import FlowControlSpec, LimitRule, Mode, PodDeletionFlowControl
from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.gates.limits import ReleaseLimit, ReleaseLimitSpec, ReleaseLimitStatus, Trip
from altershield.api.gates.rules import GateMode
from altershield.api.gates.windows import (
    Day,
    ReleaseWindow,
    ReleaseWindowSpec,
    ReleaseWindowStatus,
    Schedule,
    Weekly,
    WindowType,
)
from altershield.api.meta import Condition
from altershield.api.namespace import Namespace
from altershield.api.rollout import Phase as RolloutPhase
from altershield.api.rollout import RolloutStatus, WaitingFor
from altershield.process.certificate import Certificate
from altershield.releases.release import By
from altershield.workloads import ADAPTERS, change_workload_name
from certgen import metrics as of_certgen
from certgen.reconciler import CertificateReconciler
from certgen.settings import Settings
from docs.pages.conditions import STALL_REASONS
from docs.pages.markdown import GENERATED, code_list, table
from gatekeeper import metrics as of_gatekeeper
from gatekeeper.listers import caches
from gatekeeper.routes import routes
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.meta import ObjectMeta, OwnerReference
from reconciler import thresholds
from reconciler.cluster.caches import Caches
from reconciler.cluster.gates import FREEZES, LIMITS, WINDOWS
from reconciler.cluster.release import Release
from reconciler.flow_control.flow_control_reconciler import WATCH as FLOW_CONTROLS
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.releases.step_gauges import APPROVAL
from reconciler.releases.terms.snapshot import StallReason

_ENTERED = "altershield_release_entered_timestamp_seconds"
_STALLED = "altershield_release_stalled_timestamp_seconds"

_STEP = "altershield_release_step"
_STEP_WAITING = "altershield_release_step_waiting_timestamp_seconds"

_WINDOW_OPEN = "altershield_release_window_open"
_FROZEN = "altershield_release_freeze_in_force"

_REASONS = f"the reason of the condition `Stalled`: {code_list(STALL_REASONS)}"
_NAMESPACE = "the workload's namespace, or `(other)`"
_OF_A_RELEASE = {
    "namespace": "the workload's namespace",
    "kind": code_list(adapter.resource.kind.lower() for adapter in ADAPTERS),
    "workload": "the workload's name",
    "version": "the release's version, 32 hex digits",
}
_OF_RELEASES = (_ENTERED, _STALLED, _STEP, _STEP_WAITING)

OPEN_LABELS = {
    ("altershield_build_info", "version"): "of AlterShield",
    **{
        (metric, label): text
        for metric in (_ENTERED, _STALLED, _STEP, _STEP_WAITING)
        for label, text in _OF_A_RELEASE.items()
    },
    (_ENTERED, "state"): "as in `altershield_releases`, but for `Success`",
    (_ENTERED, "by"): f"who failed the release: {code_list(by for by in By if by)}; empty if nobody did",
    (
        _ENTERED,
        "stalled",
    ): "the `reason` of `altershield_release_stalled_timestamp_seconds`; empty if the release is not stalled",
    (_STALLED, "reason"): _REASONS,
    (_STEP, "phase"): "as in `altershield_releases_in_steps`; empty: of a newer release of AlterShield",
    (_STEP_WAITING, "reason"): f"{code_list((APPROVAL, *WaitingFor))}; empty: of a newer release of AlterShield",
    ("altershield_release_fuse_tripped", "limit_namespace"): "the namespace of the ReleaseLimit",
    ("altershield_release_fuse_tripped", "limit"): "its name",
    ("altershield_budget_missing_pods", "namespace"): "the budget's namespace",
    ("altershield_budget_missing_pods", "budget"): "the budget's name",
    ("altershield_deletion_breaker", "mode"): code_list(Mode),
    **{
        (metric, "flow_control"): "the name of the PodDeletionFlowControl"
        for metric in (
            "altershield_deletion_breaker",
            "altershield_deletion_limit_used_ratio",
            "altershield_deletion_limit_warn_ratio",
        )
    },
    (_WINDOW_OPEN, "namespace"): "the window's namespace",
    (_WINDOW_OPEN, "window"): "the window's name",
    (_WINDOW_OPEN, "type"): code_list(WindowType),
    (_FROZEN, "namespace"): "the freeze's namespace",
    (_FROZEN, "freeze"): "the freeze's name",
    **{(metric, "mode"): code_list(GateMode) for metric in (_WINDOW_OPEN, _FROZEN)},
    ("altershield_admission_denials", "namespace"): _NAMESPACE,
    ("altershield_rollbacks", "namespace"): _NAMESPACE,
}
"""The labels whose values are not all known at the start, by metric and label, with the meaning of a value."""

PROCESS = "process_"
"""The prefix of the metrics of prometheus_client's ProcessCollector, which exist only on Linux."""

_TITLES = {"gatekeeper": "Gatekeeper", "reconciler": "Reconciler", "certgen": "certgen"}
_ALL = "All components"

_HEAD = f"""\
# Metrics

{GENERATED}

Each container serves its metrics at `/metrics` on a plain HTTP port: gatekeeper 8080, reconciler 8081, certgen 8082.
Every series exists from the start of the process, except for those of single objects and namespaces. No label takes
its value from a request alone, so no client can create series. Times are Unix seconds. The alerts have
[runbooks](../runbooks).

On Linux, each container also has the usual metrics of a process: `process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_start_time_seconds`, `process_open_fds` and others.

`rate()` and `increase()` miss the events that a container counts before its first scrape. This matters most after an
outage, because a new leader finds all events of the outage at once. Where single events count,
[alerts](../../charts/altershield/files/rules/altershield.yaml) and dashboards therefore add the first value of a new
series.

API servers count the requests that they let pass without an answer: `apiserver_admission_webhook_fail_open_count`. An
API server shows this counter only after the first such request. Its label `name` is the name of a webhook:
{code_list(webhook.name for webhook in MUTATING)},
{code_list(webhook.name for webhook in VALIDATING)}.
"""


@contextlib.asynccontextmanager
async def registries() -> AsyncIterator[dict[str, CollectorRegistry]]:
    """The registries by component. The components are put together as in production, but not started: they connect to
    nothing."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        gatekeeper = of_gatekeeper.Metrics(Certificate(Path(), Path()), routes().values())
        gatekeeper.observe(client, caches(client, names.SYSTEM_NAMESPACE))
        reconciler = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="",
                start_timeout=thresholds.START_TIMEOUT,
                observe_seconds=thresholds.OBSERVE_SECONDS,
                batch_wait=thresholds.BATCH_WAIT,
                pre_timeout=thresholds.PRE_TIMEOUT,
                post_timeout=thresholds.POST_TIMEOUT,
                lease_duration=thresholds.LEASE_DURATION,
                metrics_port=0,
            ),
        )
        certgen = of_certgen.Metrics()
        settings = Settings()
        certgen.observe(client, CertificateReconciler(client, settings, certgen).changes.informers)
        release(reconciler.caches)
        _protections(reconciler.caches)
        yield {
            "gatekeeper": gatekeeper.registry,
            "reconciler": reconciler.metrics.registry,
            "certgen": certgen.registry,
        }


def page() -> str:
    return asyncio.run(_page())


async def _page() -> str:
    async with registries() as found:
        metrics = {
            component: {
                metric.name: metric for metric in found[component].collect() if not metric.name.startswith(PROCESS)
            }
            for component in _TITLES
        }
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


def release(cached: Caches) -> None:
    """Put a release in steps that is stalled and waits for a person into the caches: only such a release has a series
    in every family."""
    adapter = ADAPTERS[0]
    kind, version, namespace = adapter.resource.kind, "0" * 32, "shop"
    own = {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED}
    of_namespace = {"name": namespace, "resourceVersion": "1", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}
    cached.namespaces.observe(msgspec.convert({"metadata": of_namespace}, Namespace))
    of_workload = {"name": "web", "namespace": namespace, "uid": "uid", "resourceVersion": "1", "labels": own}
    cached.workloads[adapter.resource.group_kind].observe(
        adapter.read(msgspec.json.encode({"metadata": of_workload, "spec": {"template": {}}}))
    )
    name = change_workload_name(adapter.resource.group_kind, "web", version)
    reference = WorkloadRef(adapter.resource.api_version, kind, "web", "uid")
    owner = OwnerReference(kind, "web", "uid", adapter.resource.api_version, controller=True)
    stalled = Condition(ConditionType.STALLED, "True", StallReason.PAUSED, last_transition_time="1970-01-01T00:00:00Z")
    waiting = RolloutStatus(phase=RolloutPhase.WAITING_FOR_APPROVAL, step=1, steps=2, phase_time_unix=1)
    cached.releases.observe(
        Release(
            metadata=ObjectMeta(name, namespace, resource_version="1", owner_references=(owner,)),
            spec=ChangeWorkloadSpec(name, "web", "web", version, 1, 60, "", 0, reference),
            status=ChangeWorkloadStatus(status=WorkloadState.RUNNING, conditions=(stalled,), rollout=waiting),
        )
    )


def _protections(cached: Caches) -> None:
    """Put a PodUnavailableBudget that lacks a pod into the caches, in the namespace of the release, a
    PodDeletionFlowControl, a ReleaseWindow and a ReleaseFreeze that are in force, and a ReleaseLimit whose fuse
    tripped."""
    lacks = PodUnavailableBudgetStatus(total_replicas=1, desired_available=1)
    cached.budgets.budgets_informer.observe(
        PodUnavailableBudget(ObjectMeta("web", "shop", resource_version="1"), status=lacks)
    )
    spec = FlowControlSpec((LimitRule("10m", 100),))
    cached[FLOW_CONTROLS].observe(PodDeletionFlowControl(ObjectMeta("guard", resource_version="1"), spec))
    weekend = ReleaseWindowSpec(type=WindowType.DENY, schedules=(Schedule(Weekly((Day.SAT, Day.SUN))),))
    accepted = Condition(ConditionType.ACCEPTED, "True", "Valid")
    status = ReleaseWindowStatus(
        accepted=weekend, computed_until="2026-12-31T00:00:00Z", conditions=(accepted,), observed_generation=1
    )
    metadata = ObjectMeta("weekend", "shop", resource_version="1", generation=1)
    cached[WINDOWS].observe(ReleaseWindow(metadata, weekend, status))
    sale = ReleaseFreezeSpec(reason="sale week", from_="2026-01-01T00:00:00Z", until="9999-12-31T00:00:00Z")
    cached[FREEZES].observe(ReleaseFreeze(ObjectMeta("sale", "shop", resource_version="1"), sale))
    tripped = ReleaseLimitStatus(trip=Trip("2026-11-28T10:00:00Z", "fuse-fleet-20261128100000", made=True))
    cached[LIMITS].observe(ReleaseLimit(ObjectMeta("fleet", "shop", resource_version="1"), ReleaseLimitSpec(), tripped))
