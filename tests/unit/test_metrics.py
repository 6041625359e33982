"""The names and labels that dashboards and alerts rely on: there from the start, in every component, at 0."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from kubernetes_asyncio.client import Configuration
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from altershield.api import names
from altershield.api.kinds import ConditionType
from altershield.api.meta import Condition
from altershield.kube.client import Client
from docs.pages.metrics import OPEN_LABELS, registries, release
from reconciler.machinery.caches import Caches
from reconciler.releases.release_metrics import families
from reconciler.releases.snapshot import StallReason

GAUGE, COUNTER, HISTOGRAM, SUMMARY = "gauge", "counter", "histogram", "summary"

SHARED = {
    "altershield_build_info": (GAUGE, "component version"),
    "altershield_api_errors": (COUNTER, "code component"),
    "altershield_watch_age_seconds": (GAUGE, "component resource"),
    "altershield_watch_relists": (COUNTER, "component resource"),
    "altershield_watch_skipped": (COUNTER, "component resource"),
    "altershield_cached_objects": (GAUGE, "component resource"),
}
CONTRACT = {
    "gatekeeper": {
        **SHARED,
        "altershield_admission_requests": (COUNTER, "decision operation reason webhook"),
        "altershield_admission_errors": (COUNTER, "code webhook"),
        "altershield_admission_duration_seconds": (HISTOGRAM, "le webhook"),
        "altershield_admission_in_flight": (GAUGE, ""),
        "altershield_admission_bypasses": (COUNTER, "actor bypass"),
        "altershield_certificate_expiry_timestamp_seconds": (GAUGE, ""),
        "altershield_certificate_lifetime_seconds": (GAUGE, ""),
    },
    "reconciler": {
        **SHARED,
        "altershield_events_dropped": (COUNTER, "component"),
        "altershield_leader": (GAUGE, ""),
        "altershield_reconciles": (COUNTER, "controller outcome"),
        "altershield_reconcile_duration_seconds": (HISTOGRAM, "controller le"),
        "altershield_queue_depth": (GAUGE, "controller"),
        "altershield_queue_oldest_seconds": (GAUGE, "controller"),
        "altershield_queue_wait_seconds": (SUMMARY, "controller"),
        "altershield_api_writes": (COUNTER, "kind verb"),
        "altershield_verifications": (COUNTER, "verdict"),
        "altershield_rollbacks": (COUNTER, "reason"),
        "altershield_ungated_releases": (COUNTER, "reason"),
        "altershield_releases": (GAUGE, "state"),
        "altershield_release_duration_seconds": (HISTOGRAM, "le result"),
        "altershield_release_entered_timestamp_seconds": (GAUGE, "by kind namespace stalled state version workload"),
        "altershield_release_stalled_timestamp_seconds": (GAUGE, "kind namespace reason version workload"),
    },
    "certgen": {
        **SHARED,
        "altershield_stored_certificate_expiry_timestamp_seconds": (GAUGE, "certificate"),
        "altershield_stored_certificate_lifetime_seconds": (GAUGE, "certificate"),
        "altershield_certificate_writes": (COUNTER, "reason"),
        "altershield_ca_bundle_writes": (COUNTER, "kind"),
        "altershield_certificate_unusable": (GAUGE, ""),
        "altershield_webhooks": (GAUGE, "resource"),
    },
}
COMPONENTS = pytest.mark.parametrize("component", CONTRACT)
ENTERED = "altershield_release_entered_timestamp_seconds"
STALLED = "altershield_release_stalled_timestamp_seconds"
SHOW_THE_EXAMPLE = {
    "altershield_releases",
    "altershield_cached_objects",
    "altershield_queue_depth",
    "altershield_queue_oldest_seconds",
}
"""What the reference page's example release moves."""


@pytest.fixture
async def found() -> AsyncIterator[dict[str, CollectorRegistry]]:
    async with registries() as found:
        yield found


@COMPONENTS
async def test_every_component_shows_what_was_agreed(found: dict[str, CollectorRegistry], component: str) -> None:
    shown = {metric.name: (metric.type, " ".join(sorted(_labels(metric)))) for metric in found[component].collect()}

    assert shown == CONTRACT[component]


@COMPONENTS
async def test_every_series_is_there_from_the_start_at_0(found: dict[str, CollectorRegistry], component: str) -> None:
    for metric in found[component].collect():
        assert metric.samples, f"{metric.name} has no series"
        values = {sample.value for sample in metric.samples}
        if metric.name in SHOW_THE_EXAMPLE:
            assert 0 in values, metric.name
        elif metric.name not in (ENTERED, STALLED):
            assert values == {metric.name == "altershield_build_info"}, metric.name


@COMPONENTS
async def test_what_is_shared_says_whose_it_is(found: dict[str, CollectorRegistry], component: str) -> None:
    for metric in found[component].collect():
        if "component" in _labels(metric):
            assert {sample.labels["component"] for sample in metric.samples} == {component}


@COMPONENTS
async def test_every_metric_is_explained_and_named_as_its_unit_wants(
    found: dict[str, CollectorRegistry], component: str
) -> None:
    for metric in found[component].collect():
        assert metric.documentation.endswith("."), metric.name
        if metric.type in (HISTOGRAM, SUMMARY):
            assert metric.name.endswith("_seconds"), metric.name


def test_no_label_but_those_of_the_oldest_open_releases_is_open() -> None:
    assert {metric for metric, _ in OPEN_LABELS} == {"altershield_build_info", ENTERED, STALLED}


ENTERED_AT = 1_700_000_000


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    """With one release, which is stalled."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        release(caches)
        yield caches


def shown(caches: Caches, name: str, *conditions: Condition) -> dict[str, float]:
    """The series of a metric, by the reason of their stall, of a release that has these conditions."""
    (record,) = caches.releases.all()
    status = msgspec.structs.replace(record.status, conditions=conditions, entry_time_unix=ENTERED_AT)
    metadata = msgspec.structs.replace(record.metadata, resource_version="2")
    caches.releases.observe(msgspec.structs.replace(record, metadata=metadata, status=status))
    (metric,) = [each for each in families(caches) if each.name == name]
    return {sample.labels["reason" if name == STALLED else "stalled"]: sample.value for sample in metric.samples}


async def test_a_stalled_release_is_shown_since_when_it_is_so(caches: Caches) -> None:
    since = Condition(ConditionType.STALLED, "True", StallReason.PAUSED, last_transition_time="2023-11-14T22:15:00Z")
    assert shown(caches, STALLED, since) == {"Paused": ENTERED_AT + 100}


@pytest.mark.parametrize("text", ["", "yesterday", "0000-99-99T00:00:00Z"])
async def test_what_somebody_wrote_as_a_time_does_not_take_all_metrics_away(caches: Caches, text: str) -> None:
    since = Condition(ConditionType.STALLED, "True", StallReason.PAUSED, last_transition_time=text)
    assert shown(caches, STALLED, since) == {"Paused": ENTERED_AT}


async def test_a_release_that_goes_on_is_not_shown_as_stalled(caches: Caches) -> None:
    goes_on = Condition(ConditionType.STALLED, "False", "GoesOn")
    assert shown(caches, STALLED, goes_on) == {}
    assert shown(caches, ENTERED, goes_on) == {"": ENTERED_AT}


async def test_nobody_is_called_for_a_release_without_replicas(caches: Caches) -> None:
    assert shown(caches, ENTERED, Condition(ConditionType.NO_REPLICAS, "True", "NoPods")) == {}


def _labels(metric: Metric) -> set[str]:
    return {label for sample in metric.samples for label in sample.labels}
