"""Jobs: decisions, and simulated Jobs on the sandbox's API."""

import dataclasses
from typing import Any

from kube_base.resources import JOBS, PODS
from kube_base.times import rfc3339
from kube_sandbox.cluster.jobs.kinds import Job, JobSpec, JobStatus
from kube_sandbox.cluster.jobs.progress import Plan, plan
from kube_sandbox.cluster.kinds import Meta, Pod, PodStatus
from support.cluster import SETTINGS, SPACE, Cluster, Object

NOW = 1_700_000_000.0


def decide(*phases: str, now: float = NOW, status: JobStatus | None = None, restarts: int = 0, **spec: Any) -> Plan:
    """The plan for a Job with pods in these phases, which ended at NOW."""
    pods = [Pod(Meta(name=str(number)), status=_status(phase, restarts)) for number, phase in enumerate(phases)]
    job = Job(Meta(name="smoke"), JobSpec(template={}, **({"completions": 1} | spec)), status or JobStatus())
    return plan(job, pods, now, back_off=10)


def _status(phase: str, restarts: int) -> PodStatus:
    end = {"terminated": {"finishedAt": rfc3339(NOW)}} if phase in ("Failed", "Succeeded") else {"running": {}}
    return PodStatus(phase=phase, container_statuses=({"state": end, "restartCount": restarts},))


def conditions(found: Plan) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in found.status.conditions]


def test_new_job_creates_its_pods_and_has_a_start_time() -> None:
    found = decide()
    assert (found.create, found.status.active, found.status.start_time) == (1, 1, rfc3339(NOW))
    assert decide(completions=5, parallelism=3).create == 3
    assert decide("Succeeded", "Succeeded", "Running", completions=4, parallelism=3).create == 1
    assert decide("Running").create == 0


def test_job_completes_with_the_last_pod() -> None:
    found = decide("Succeeded")
    assert conditions(found) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert found.status.completion_time == rfc3339(NOW)
    assert conditions(decide("Succeeded", "Running", completions=None, parallelism=2)) == []
    assert conditions(decide("Succeeded", completions=None, parallelism=2))[-1][0] == "Complete"


def test_failed_pods_are_replaced_with_growing_delays_up_to_the_limit() -> None:
    assert (decide("Failed").create, decide("Failed").after) == (0, 10)
    assert decide("Failed", now=NOW + 10).create == 1
    assert decide("Failed", "Failed", now=NOW + 10).after == 10
    found = decide("Failed", "Failed", backoff_limit=1)
    assert conditions(found) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert conditions(decide("Running", restarts=2, backoff_limit=1))[-1] == ("Failed", "BackoffLimitExceeded")


def test_job_fails_at_its_deadline_and_ends_its_pods() -> None:
    started = JobStatus(start_time=rfc3339(NOW))
    assert decide("Running", status=started, active_deadline_seconds=30).after == 30
    found = decide("Running", now=NOW + 30, status=started, active_deadline_seconds=30)
    assert conditions(found)[-1] == ("Failed", "DeadlineExceeded")
    assert len(found.delete) == 1


def test_suspended_job_has_no_pods() -> None:
    found = decide("Running", suspend=True)
    assert (found.create, len(found.delete), found.status.start_time) == (0, 1, None)


def test_finished_job_is_deleted_after_its_time_to_live() -> None:
    ended = decide("Succeeded").status
    assert decide(status=ended).after is None
    assert decide(status=ended, ttl_seconds_after_finished=60).after == 60
    assert decide(status=ended, ttl_seconds_after_finished=60, now=NOW + 60).expired
    assert decide(status=ended).create == 0


async def create(cluster: Cluster, image: str, **spec: Any) -> None:
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": image, "terminationMessagePolicy": "FallbackToLogsOnError"}],
    }
    body = {"metadata": {"name": "smoke"}, "spec": {"template": {"spec": pod}, **spec}}
    await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", **body}, SPACE)


def has(type_: str) -> Any:
    def met(items: list[Object]) -> bool:
        return any(
            each["type"] == type_ and each["status"] == "True"
            for item in items
            for each in (item.get("status") or {}).get("conditions") or []
        )

    return met


async def test_simulated_job_completes_and_is_deleted_with_its_pods(cluster: Cluster) -> None:
    await create(cluster, "busybox:completes-after-100ms", ttlSecondsAfterFinished=1)
    await cluster.until(JOBS, has("Complete"), "")
    await cluster.until(JOBS, lambda items: not items, "")
    await cluster.until(PODS, lambda items: not items, "")


async def test_simulated_job_fails_after_its_retries_and_pods_keep_the_end_of_the_log(api_only: Cluster) -> None:
    async with api_only.simulation(dataclasses.replace(SETTINGS, job_back_off=0.05)):
        await create(api_only, "busybox:exits-after-50ms", backoffLimit=1)
        await api_only.until(JOBS, has("Failed"), "")
        pods = (await api_only.client.list(PODS, SPACE)).items
        assert len(pods) == 2
        for pod in pods:
            (status,) = pod["status"]["containerStatuses"]
            assert status["state"]["terminated"]["message"] == "busybox:exits-after-50ms exits with 1\n"


async def test_simulated_job_ends_at_its_deadline(cluster: Cluster) -> None:
    await create(cluster, "busybox", activeDeadlineSeconds=1)
    await cluster.until(JOBS, has("Failed"), "")
    await cluster.until(PODS, lambda items: not items, "")
