"""Subjects of checks by PromQL."""

from typing import Any

import msgspec

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef
from altershield.api.check_specs import CheckSpec, Phase, PrometheusCheck
from altershield.api.policy import AppliedPolicy
from reconciler.checks.check import Subject
from tests.unit.altershield.releases import builders

STARTED = 1_700_000_000
PREVIOUS = SourceRef("ReplicaSet", "sleep-5c6f8", "old", builders.V2)
URL = "http://prometheus.monitoring.svc:9090"


def check(query: str = "up", *, timeout: int = 120, **fields: Any) -> CheckSpec:
    """A check by PromQL. Fields that are not set have small values."""
    defaults = {"max": "1", "interval_seconds": 10, "samples": 3}
    prometheus = PrometheusCheck(**{"url": URL, "query": query, **defaults, **fields})
    return CheckSpec(name="errors", timeout_seconds=timeout, prometheus=prometheus)


def subject(
    definition: CheckSpec | None = None,
    *,
    pods: tuple[str, ...] = ("sleep-7d4b9-abcde", "sleep-7d4b9-fghij"),
    kind: str = "Deployment",
    name: str = "sleep",
    previous: SourceRef = PREVIOUS,
    started: float = STARTED,
) -> Subject:
    release = builders.release(builders.V1, ChangeWorkloadStatus(previous=previous), kind=kind, name=name)
    policy = AppliedPolicy(namespace="policies", name="default")
    release = msgspec.structs.replace(release, spec=msgspec.structs.replace(release.spec, policy=policy))
    definition = definition or check()
    return Subject(
        builders.change_pod(1, *pods), release, definition, Phase.POST, started, started + definition.timeout_seconds
    )
