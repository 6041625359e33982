"""The metrics of releases in steps."""

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.rollout import ENDED, PassedStep, Phase, RolloutStatus, WaitingFor
from reconciler.cluster.caches import Caches
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.step_gauges import PHASES, step_families
from tests.unit.altershield.releases.builders import NOW, V1, V2
from tests.unit.reconciler.releases.cached import put_release


def put(caches: Caches, name: str, phase: str, present: str = V1, **fields: Any) -> None:
    """A release in steps that began at NOW."""
    status = RolloutStatus(phase=phase, step=2, steps=4, phase_time_unix=NOW + 9, **fields)
    put_release(caches, name, ChangeWorkloadStatus(status="Running", rollout=status), present)


def shown(caches: Caches, family: str) -> list[tuple[dict[str, str], float]]:
    found = step_families(caches, NOW + 100)
    return [(sample.labels, sample.value) for metric in found for sample in metric.samples if sample.name == family]


async def test_releases_are_counted_by_phase_from_the_start(caches: Caches) -> None:
    assert shown(caches, "altershield_releases_in_steps") == [({"phase": each}, 0) for each in PHASES]
    assert shown(caches, "altershield_oldest_held_release_seconds") == [({}, 0)]
    put(caches, "one", Phase.SOAKING)
    put(caches, "two", Phase.SOAKING)
    put(caches, "three", Phase.HELD)
    counts = {labels["phase"]: value for labels, value in shown(caches, "altershield_releases_in_steps") if value}
    assert counts == {"Soaking": 2, "Held": 1}
    assert shown(caches, "altershield_oldest_held_release_seconds") == [({}, 100)]


@pytest.mark.parametrize("phase", ENDED)
async def test_releases_that_have_ended_or_were_replaced_have_no_series(caches: Caches, phase: Phase) -> None:
    put(caches, "ended", phase)
    put(caches, "replaced", Phase.SOAKING, present=V2)
    put_release(caches, "whole", ChangeWorkloadStatus(status="Running"))
    assert shown(caches, "altershield_release_step") == []
    assert not any(value for _, value in shown(caches, "altershield_releases_in_steps"))


async def test_present_release_has_its_step(caches: Caches) -> None:
    put(caches, "web", Phase.SOAKING)
    own = {"namespace": "default", "kind": "deployment", "workload": "web", "version": V1}
    assert shown(caches, "altershield_release_step") == [({**own, "phase": "Soaking"}, 2)]
    assert shown(caches, "altershield_release_step_waiting_timestamp_seconds") == []
    put(caches, "api", "x" * 100)
    phases = {labels["workload"]: labels["phase"] for labels, _ in shown(caches, "altershield_release_step")}
    assert phases == {"web": "Soaking", "api": ""}, "no client makes a label"


@pytest.mark.parametrize(
    ("phase", "waiting_for", "reason", "since"),
    [
        (Phase.WAITING_FOR_APPROVAL, (), "approval", NOW + 9),
        (Phase.ROLLING, (WaitingFor.QUOTA, WaitingFor.PERSON), "quota", NOW + 5),
        (Phase.HELD, ("x" * 100, WaitingFor.PERSON), "person", NOW + 5),
        (Phase.HELD, ("x" * 100,), "", NOW + 5),
    ],
)
async def test_release_that_waits_has_the_reason_and_the_time(
    caches: Caches, phase: Phase, waiting_for: tuple[str, ...], reason: str, since: int
) -> None:
    put(caches, "web", phase, waiting_for=waiting_for, waiting_since_unix=NOW + 5)
    ((labels, value),) = shown(caches, "altershield_release_step_waiting_timestamp_seconds")
    assert (labels["workload"], labels["reason"], value) == ("web", reason, since)


async def test_release_that_stopped_waits_for_nothing(caches: Caches) -> None:
    put(caches, "web", Phase.STOPPED, waiting_for=(WaitingFor.PERSON,), waiting_since_unix=NOW)
    assert shown(caches, "altershield_release_step_waiting_timestamp_seconds") == []


async def test_the_hundred_oldest_and_the_hundred_newest_waits_are_shown(caches: Caches) -> None:
    for number in range(230):
        put(caches, f"w-{number:03}", Phase.HELD, waiting_for=("person",), waiting_since_unix=NOW - number)
    found = shown(caches, "altershield_release_step_waiting_timestamp_seconds")
    assert {labels["workload"] for labels, _ in found} == {
        f"w-{number:03}" for number in (*range(100), *range(130, 230))
    }
    assert len(shown(caches, "altershield_release_step")) == 200


def test_each_step_that_passed_is_counted_once() -> None:
    registry = CollectorRegistry()
    metrics = ReleaseMetrics(registry)
    one, two = PassedStep(1, 1, NOW, NOW + 600), PassedStep(3, 5, NOW + 600, NOW + 590)
    metrics.steps_passed((), (one,))
    metrics.steps_passed((one,), (one, two))
    metrics.steps_passed((one, two), msgspec.convert([msgspec.to_builtins(one)], tuple[PassedStep, ...]))
    assert registry.get_sample_value("altershield_step_duration_seconds_count") == 2
    assert registry.get_sample_value("altershield_step_duration_seconds_sum") == 600
