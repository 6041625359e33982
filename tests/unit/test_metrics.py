"""The names and labels of metrics, on which dashboards and alerts rely. All series exist from the start."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from altershield.api import names
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.policy import DefensePolicy
from docs.pages.metrics import OPEN_LABELS, PROCESS, registries, release
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from reconciler.cluster.caches import Caches
from reconciler.releases.gauges import families
from reconciler.releases.terms.snapshot import StallReason

GAUGE, COUNTER, HISTOGRAM, SUMMARY = "gauge", "counter", "histogram", "summary"

SHARED = {
    "altershield_build_info": (GAUGE, "component version"),
    "altershield_memory_working_set_bytes": (GAUGE, "component"),
    "altershield_memory_limit_bytes": (GAUGE, "component"),
    "altershield_api_errors": (COUNTER, "code component"),
    "altershield_watch_age_seconds": (GAUGE, "component resource"),
    "altershield_watch_relists": (COUNTER, "component resource"),
    "altershield_watch_skipped": (COUNTER, "component resource"),
    "altershield_cached_objects": (GAUGE, "component resource"),
}
CONTRACT = {
    "gatekeeper": {
        **SHARED,
        "altershield_admission_requests": (COUNTER, "decision dry_run operation reason webhook"),
        "altershield_admission_denials": (COUNTER, "namespace reason"),
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
        "altershield_callbacks": (COUNTER, "outcome"),
        "altershield_check_callbacks": (COUNTER, "outcome"),
        "altershield_skips": (COUNTER, "result"),
        "altershield_verifications": (COUNTER, "verdict"),
        "altershield_unchecked_pods": (COUNTER, "reason"),
        "altershield_ungated_deletions": (COUNTER, ""),
        "altershield_break_glass": (COUNTER, ""),
        "altershield_budgets": (GAUGE, "state"),
        "altershield_budget_missing_pods": (GAUGE, "budget namespace"),
        "altershield_deletion_breaker": (GAUGE, "flow_control mode state"),
        "altershield_deletion_limit_used_ratio": (GAUGE, "flow_control"),
        "altershield_deletion_limit_warn_ratio": (GAUGE, "flow_control"),
        "altershield_objects": (GAUGE, "accepted kind"),
        "altershield_release_window_open": (GAUGE, "mode namespace type window"),
        "altershield_release_windows_computed_seconds": (GAUGE, ""),
        "altershield_release_fuse_tripped": (GAUGE, "limit limit_namespace"),
        "altershield_release_freezes": (GAUGE, "mode"),
        "altershield_release_freeze_in_force": (GAUGE, "freeze mode namespace"),
        "altershield_release_freeze_without_end_seconds": (GAUGE, ""),
        "altershield_rollbacks": (COUNTER, "namespace reason"),
        "altershield_ungated_releases": (COUNTER, "reason"),
        "altershield_notifications": (COUNTER, "result type"),
        "altershield_releases": (GAUGE, "state"),
        "altershield_setting_enabled": (GAUGE, "setting"),
        "altershield_policies": (GAUGE, "mode"),
        "altershield_release_duration_seconds": (HISTOGRAM, "le result"),
        "altershield_release_entered_timestamp_seconds": (GAUGE, "by kind namespace stalled state version workload"),
        "altershield_release_stalled_timestamp_seconds": (GAUGE, "kind namespace reason version workload"),
        "altershield_releases_in_steps": (GAUGE, "phase"),
        "altershield_oldest_held_release_seconds": (GAUGE, ""),
        "altershield_release_step": (GAUGE, "kind namespace phase version workload"),
        "altershield_release_step_waiting_timestamp_seconds": (GAUGE, "kind namespace reason version workload"),
        "altershield_step_duration_seconds": (HISTOGRAM, "le"),
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
STEP = "altershield_release_step"
STEP_WAITING = "altershield_release_step_waiting_timestamp_seconds"
OLDEST_HELD = "altershield_oldest_held_release_seconds"
MISSING = "altershield_budget_missing_pods"
WARNS = "altershield_deletion_limit_warn_ratio"
COMPUTED = "altershield_release_windows_computed_seconds"
WINDOW_OPEN = "altershield_release_window_open"
FROZEN = "altershield_release_freeze_in_force"
TRIPPED = "altershield_release_fuse_tripped"
SHOW_THE_EXAMPLE = {
    "altershield_releases",
    "altershield_releases_in_steps",
    "altershield_cached_objects",
    "altershield_queue_depth",
    "altershield_queue_oldest_seconds",
    "altershield_setting_enabled",
    "altershield_budgets",
    "altershield_deletion_breaker",
    "altershield_objects",
    "altershield_release_freezes",
}
"""The metrics that the examples of the reference page change, and the settings, of which two are on."""

OF_THE_EXAMPLE = (ENTERED, STALLED, STEP, STEP_WAITING, OLDEST_HELD, MISSING, WARNS, COMPUTED, FROZEN, TRIPPED)
"""The metrics that only the examples have a series of, or a value other than 0."""


@pytest.fixture
async def found() -> AsyncIterator[dict[str, CollectorRegistry]]:
    async with registries() as found:
        yield found


@COMPONENTS
async def test_component_has_its_metrics_with_their_labels(found: dict[str, CollectorRegistry], component: str) -> None:
    shown = {metric.name: (metric.type, " ".join(sorted(_labels(metric)))) for metric in own(found[component])}

    assert shown == CONTRACT[component]


@COMPONENTS
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")
async def test_component_has_the_metrics_of_its_process(found: dict[str, CollectorRegistry], component: str) -> None:
    shown = {metric.name: metric.samples[0].value for metric in found[component].collect()}

    assert shown["process_cpu_seconds"] > 0
    assert shown["process_resident_memory_bytes"] > 0


@COMPONENTS
async def test_all_series_exist_from_the_start_with_0(found: dict[str, CollectorRegistry], component: str) -> None:
    for metric in own(found[component]):
        assert metric.samples, f"{metric.name} has no series"
        values = {sample.value for sample in metric.samples}
        if metric.name in SHOW_THE_EXAMPLE:
            assert 0 in values, metric.name
        elif metric.name not in OF_THE_EXAMPLE and not metric.name.startswith("altershield_memory_"):
            assert values == {metric.name == "altershield_build_info"}, metric.name


@COMPONENTS
async def test_shared_metrics_have_the_label_component(found: dict[str, CollectorRegistry], component: str) -> None:
    for metric in found[component].collect():
        if "component" in _labels(metric):
            assert {sample.labels["component"] for sample in metric.samples} == {component}


@COMPONENTS
async def test_metric_has_a_help_text_and_a_name_with_its_unit(
    found: dict[str, CollectorRegistry], component: str
) -> None:
    for metric in own(found[component]):
        assert metric.documentation.endswith("."), metric.name
        if metric.type in (HISTOGRAM, SUMMARY):
            assert metric.name.endswith("_seconds"), metric.name


def test_only_bounded_numbers_of_objects_and_namespaces_have_labels_with_free_values() -> None:
    counted = {"altershield_admission_denials", "altershield_rollbacks"}
    of_flow_controls = {"altershield_deletion_breaker", "altershield_deletion_limit_used_ratio", WARNS}
    bounded = {ENTERED, STALLED, STEP, STEP_WAITING, MISSING, WINDOW_OPEN, TRIPPED, FROZEN, *of_flow_controls}
    assert {metric for metric, _ in OPEN_LABELS} == {"altershield_build_info", *bounded, *counted}


ENTERED_AT = 1_700_000_000


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    """Caches with one stalled release."""
    async with Client(Configuration(host="https://127.0.0.1")) as client:
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        release(caches)
        yield caches


def shown(caches: Caches, name: str, *conditions: Condition) -> dict[str, float]:
    """The series of a metric for a release with these conditions, by the reason of the stall."""
    (known,) = caches.releases.all()
    status = msgspec.structs.replace(known.status, conditions=conditions, entry_time_unix=ENTERED_AT)
    metadata = msgspec.structs.replace(known.metadata, resource_version="2")
    caches.releases.observe(msgspec.structs.replace(known, metadata=metadata, status=status))
    (metric,) = [each for each in families(caches) if each.name == name]
    return {sample.labels["reason" if name == STALLED else "stalled"]: sample.value for sample in metric.samples}


async def test_stalled_release_has_the_time_since_which_it_is_stalled(caches: Caches) -> None:
    since = Condition(ConditionType.STALLED, "True", StallReason.PAUSED, last_transition_time="2023-11-14T22:15:00Z")
    assert shown(caches, STALLED, since) == {"Paused": ENTERED_AT + 100}


@pytest.mark.parametrize("text", ["", "yesterday", "0000-99-99T00:00:00Z"])
async def test_invalid_time_in_a_condition_does_not_break_the_metrics(caches: Caches, text: str) -> None:
    since = Condition(ConditionType.STALLED, "True", StallReason.PAUSED, last_transition_time=text)
    assert shown(caches, STALLED, since) == {"Paused": ENTERED_AT}


async def test_release_that_proceeds_is_not_stalled(caches: Caches) -> None:
    goes_on = Condition(ConditionType.STALLED, "False", "GoesOn")
    assert shown(caches, STALLED, goes_on) == {}
    assert shown(caches, ENTERED, goes_on) == {"": ENTERED_AT}


async def test_release_without_replicas_is_not_stalled(caches: Caches) -> None:
    assert shown(caches, ENTERED, Condition(ConditionType.NO_REPLICAS, "True", "NoPods")) == {}


async def test_settings_and_modes_of_policies_are_shown(caches: Caches) -> None:
    wire = {"metadata": {"name": "blocking", "namespace": names.SYSTEM_NAMESPACE, "resourceVersion": "1"}}
    off = {**wire, "spec": {"type": "isBlockingUp", "enable": False}}
    caches.settings.observe(msgspec.convert(off, OpsConfigInfo))
    for name, mode in (("one", "observe"), ("two", "observe"), ("three", "enforce")):
        metadata = {"name": name, "namespace": names.SYSTEM_NAMESPACE, "resourceVersion": "1"}
        caches.policies.observe(msgspec.convert({"metadata": metadata, "spec": {"mode": mode}}, DefensePolicy))

    found = {metric.name: {s.labels[label]: s.value for s in metric.samples for label in s.labels if label in LABELS}
             for metric in families(caches)}  # fmt: skip
    assert found["altershield_setting_enabled"] == {"blocking": 0, "rollback": 1, "branch": 0}
    assert found["altershield_policies"] == {"observe": 2, "warn": 0, "enforce": 1}


LABELS = ("setting", "mode")


def own(registry: CollectorRegistry) -> list[Metric]:
    """The metrics without those of the process, which are not AlterShield's and exist only on Linux."""
    return [metric for metric in registry.collect() if not metric.name.startswith(PROCESS)]


def _labels(metric: Metric) -> set[str]:
    return {label for sample in metric.samples for label in sample.labels}
