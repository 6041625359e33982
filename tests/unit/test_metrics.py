"""The names and labels that dashboards and alerts rely on: there from the start, in every component, at 0."""

from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from docs.pages.metrics import OPEN_LABELS, registries

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
        "altershield_slipped_releases": (COUNTER, "reason"),
        "altershield_releases": (GAUGE, "state"),
        "altershield_release_duration_seconds": (HISTOGRAM, "le result"),
        "altershield_release_entered_timestamp_seconds": (GAUGE, "by deployment namespace state version"),
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
        elif metric.name != ENTERED:
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
    assert {metric for metric, _ in OPEN_LABELS} == {"altershield_build_info", ENTERED}


def _labels(metric: Metric) -> set[str]:
    return {label for sample in metric.samples for label in sample.labels}
