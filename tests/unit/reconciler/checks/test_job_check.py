"""The check `job`: the Job that is created, and what its states mean."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, JobCheck, Phase
from kube_base.resources import JOBS, PODS
from kube_base.times import rfc3339
from reconciler.checks.check import Availability, Fail, Lost, NotStarted, Pass, Pending, Started, Subject, Unknown
from reconciler.checks.job_check import JobCheckRunner
from reconciler.checks.job_manifest import TTL_SECONDS, job, job_name, problem
from tests.support.stub_api import StubApi, answer, serving
from tests.unit.altershield.releases.builders import NOW, V1
from tests.unit.reconciler.checks.policy_subjects import subject

Object = dict[str, Any]

POD: Object = {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": "smoke"}]}


def template(**spec: Any) -> Object:
    return {"spec": {"template": {"spec": POD}, **spec}}


def about(
    given: Object | None = None, phase: Phase = Phase.POST, *, name: str = "smoke", deadline: float = NOW + 120
) -> Subject:
    return subject(CheckSpec(name, job=JobCheck(given or template())), phase, deadline=deadline)


def made(given: Object | None = None, **more: Any) -> Object:
    batch = about(given, **more)
    assert batch.check.job is not None
    return job(batch, batch.check.job, NOW + 20)


def test_job_is_in_the_namespace_of_the_batch_and_owned_by_its_change_pod() -> None:
    batch, found = about(), made()
    metadata, owner = found["metadata"], batch.change_pod.metadata
    assert metadata["namespace"] == owner.namespace
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "app.ops.cloud.alipay.com/v1alpha1",
            "kind": "ChangePod",
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
        }
    ], "without blockOwnerDeletion, which needs a permission"
    assert metadata["annotations"] == {labels.CHECK_ID: "batch-2/smoke/post"}
    assert metadata["labels"] == found["spec"]["template"]["metadata"]["labels"] == {labels.CHECK: "smoke"}


def test_names_differ_by_batch_check_and_phase_and_are_valid_labels() -> None:
    long = "a" * 31 + "-" + "b" * 31
    subjects = [about(), about(phase=Phase.PRE), about(name="load"), about(name=long), about(name=long[:-1])]
    names = {job_name(each) for each in subjects} | {
        job_name(subject(CheckSpec("smoke", job=JobCheck(template())), uid="other"))
    }
    assert len(names) == 6
    assert all(len(name) <= 63 and "--" not in name for name in names)
    assert job_name(about()) == job_name(about())


def test_job_ends_with_the_check_or_earlier_and_is_deleted_after_its_end() -> None:
    assert made()["spec"]["activeDeadlineSeconds"] == 100
    assert made(template(activeDeadlineSeconds=30))["spec"]["activeDeadlineSeconds"] == 30
    assert made(template(activeDeadlineSeconds=900))["spec"]["activeDeadlineSeconds"] == 100
    assert made(deadline=NOW)["spec"]["activeDeadlineSeconds"] == 1
    assert made()["spec"]["ttlSecondsAfterFinished"] == TTL_SECONDS
    assert made(template(ttlSecondsAfterFinished=10**6))["spec"]["ttlSecondsAfterFinished"] == 86_400
    assert made(template(ttlSecondsAfterFinished=900))["spec"]["ttlSecondsAfterFinished"] == 900


@pytest.mark.parametrize("seconds", [0, 5])
def test_job_whose_template_deletes_it_at_once_stays_until_its_result_is_read(seconds: int) -> None:
    """A Job that is gone has no result, and a check without a result passes by default."""
    assert made(template(ttlSecondsAfterFinished=seconds))["spec"]["ttlSecondsAfterFinished"] == 300


def test_template_keeps_its_fields_but_no_label_of_altershield() -> None:
    given = template(backoffLimit=0)
    given["metadata"] = {"labels": {"team": "a", labels.VERSION: V1}, "annotations": {"x": "y"}, "name": "mine"}
    given["spec"]["template"] = {
        "metadata": {"labels": {"app": "smoke", labels.OPERATE_FINISHED: "1"}, "annotations": {"p": "q"}},
        "spec": {**POD, "serviceAccountName": "smoke"},
    }
    before = msgspec.json.encode(given)
    found = made(given)
    assert found["metadata"]["name"] == job_name(about())
    assert found["metadata"]["labels"] == {"team": "a", labels.CHECK: "smoke"}
    assert found["metadata"]["annotations"]["x"] == "y"
    assert found["spec"]["backoffLimit"] == 0
    pod = found["spec"]["template"]
    assert pod["metadata"] == {"labels": {"app": "smoke", labels.CHECK: "smoke"}, "annotations": {"p": "q"}}
    assert pod["spec"]["serviceAccountName"] == "smoke"
    assert pod["spec"]["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert msgspec.json.encode(given) == before, "the policy is shared by all batches"


def test_placeholders_in_env_values_are_replaced_by_plain_values() -> None:
    env = [
        {"name": "A", "value": "{{namespace}}/{{ workload }}-{{version}}"},
        {"name": "PODS", "value": "{{pods}}"},
        {"name": "OLD", "value": "{{previousVersion}}"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "{{workload}}", "key": "k"}}},
    ]
    container = {"name": "smoke", "image": "{{workload}}", "env": env}
    found = made(template(template={"spec": {"containers": [container]}}))
    (changed,) = found["spec"]["template"]["spec"]["containers"]
    assert changed["image"] == "{{workload}}"
    assert changed["env"] == [
        {"name": "A", "value": f"default/sleep-{V1}"},
        {"name": "PODS", "value": "sleep-a|sleep-b"},
        {"name": "OLD", "value": ""},
        env[3],
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "no object spec"),
        ({"spec": {}}, "no object spec.template"),
        ({"spec": {"template": {"spec": "x"}}}, "no object spec.template.spec"),
        ({"spec": {"template": {"spec": {"containers": 1}}}}, "containers is no list"),
        ({"spec": {"template": {"spec": {"containers": [1]}}}}, "containers is no list"),
        ({"spec": {"template": {"spec": {"containers": [{"env": {"A": 1}}]}}}}, "env is no list"),
        ({"spec": {"template": {"metadata": {"labels": 1}, "spec": POD}}}, "no object labels"),
        (template(activeDeadlineSeconds="60"), "activeDeadlineSeconds is not a number"),
        (template(ttlSecondsAfterFinished=-1), "ttlSecondsAfterFinished is not a number"),
        (
            template(template={"spec": {"containers": [{"env": [{"name": "A", "value": "{{secret}}"}]}]}}),
            "{{secret}} is not a placeholder",
        ),
    ],
)
async def test_template_that_cannot_be_used_is_unknown(given: Object, why: str) -> None:
    async with serving() as (api, client):
        found = await JobCheckRunner(client, lambda: NOW).start(about(given or {"x": 1}))
        assert isinstance(found, Unknown)
        assert why in found.reason
        assert api.requests == []
    if "placeholder" not in why:  # which another rule checks
        assert why in problem(JobCheck(given or {"x": 1})), "the policy is not accepted"


def test_template_of_a_job_is_accepted() -> None:
    assert problem(JobCheck(template(activeDeadlineSeconds=30))) == ""


def path(request: Any) -> bool:
    return "/jobs" in request.path


async def finished(
    api: StubApi, batch: Subject, type_: str = "", why: str = "", *, pods: list[Object] | None = None
) -> str:
    """The uid of the Job, which has this condition now."""
    found = api.get(JOBS, job_name(batch), "default")
    assert found is not None
    found["metadata"]["uid"] = "job-uid"  # the stub sets none
    conditions = [{"type": type_, "status": "True", "reason": why, "message": "text"}] if type_ else []
    await api.put(JOBS, {**found, "status": {"conditions": conditions}})
    for number, status in enumerate(pods or []):
        owner = {"kind": "Job", "name": job_name(batch), "uid": "job-uid", "controller": True}
        metadata = {
            "name": f"p{number}",
            "namespace": "default",
            "labels": {"batch.kubernetes.io/job-name": job_name(batch)},
            "ownerReferences": [owner],
        }
        await api.put(PODS, {"metadata": metadata, "status": status})
    return "job-uid"


def failed_pod(message: str, at: str = "2026-01-01T00:00:00Z") -> Object:
    end = {"exitCode": 3, "reason": "Error", "message": message, "finishedAt": at}
    return {"containerStatuses": [{"name": "smoke", "state": {"terminated": end}}]}


async def test_second_start_finds_the_first_job() -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        first = await check.start(about())
        assert isinstance(first, Started)
        assert await check.start(about()) == first
        assert len(api.all(JOBS)) == 1
    assert check.repeatable == {Phase.PRE, Phase.POST}
    assert check.availability is Availability.AVAILABLE


async def test_no_job_is_created_after_the_deadline_and_one_that_exists_is_found() -> None:
    """The reconciler stopped before it created the Job, or before it stored the uid. A new Job would have no time."""
    async with serving() as (api, client):
        late = JobCheckRunner(client, lambda: NOW + 121)
        found = await late.start(about())
        assert isinstance(found, NotStarted)
        assert found.reason.endswith("does not exist")
        assert api.all(JOBS) == []
        first = await JobCheckRunner(client, lambda: NOW).start(about())
        assert await late.start(about()) == first


@pytest.mark.parametrize("change", ["uid", "annotation", "age"])
async def test_job_of_somebody_else_with_its_name_is_not_believed(change: str) -> None:
    async with serving() as (api, client):
        foreign = made()
        if change == "uid":
            foreign["metadata"]["ownerReferences"][0]["uid"] = "other"
        elif change == "age":  # somebody created it when the ChangePod was created, before the check began
            foreign["metadata"]["creationTimestamp"] = rfc3339(NOW - 10)
        else:
            foreign["metadata"]["annotations"] = {}
        await api.put(JOBS, foreign)
        found = await JobCheckRunner(client, lambda: NOW).start(about())
        assert isinstance(found, Unknown)
        assert "not created by AlterShield" in found.reason


@pytest.mark.parametrize(
    ("code", "why", "wanted"),
    [
        (403, "Forbidden", Unknown),
        (422, "Invalid", Unknown),
        (404, "NotFound", Unknown),
        (400, "BadRequest", Unknown),
        (429, "TooManyRequests", NotStarted),
        (500, "InternalError", Lost),
        (504, "Timeout", Lost),
    ],
)
async def test_refused_job_is_unknown_and_one_that_may_exist_is_started_again(
    code: int, why: str, wanted: type[Any]
) -> None:
    async with serving() as (api, client):
        api.fault(path, answer(code, why), times=9)
        assert isinstance(await JobCheckRunner(client, lambda: NOW).start(about()), wanted)


async def test_refusal_names_the_value_of_the_chart() -> None:
    async with serving() as (api, client):
        api.fault(path, answer(403, "Forbidden"), times=9)
        found = await JobCheckRunner(client, lambda: NOW).start(about())
        assert isinstance(found, Unknown)
        assert "checks.jobs.enabled" in found.reason


async def test_no_job_is_created_in_the_system_namespace() -> None:
    async with serving() as (api, client):
        found = await JobCheckRunner(client, lambda: NOW, "default").start(about())
        assert isinstance(found, Unknown)
        assert api.requests == []


@pytest.mark.parametrize(
    ("type_", "why", "pods", "wanted"),
    [
        ("", "", [], Pending),
        ("Suspended", "", [], Pending),
        ("FailureTarget", "", [], Pending),
        ("SuccessCriteriaMet", "", [], Pending),
        ("Complete", "", [], Pass),
        ("Failed", "BackoffLimitExceeded", [], Fail),
        ("Failed", "DeadlineExceeded", [], Unknown),
    ],
)
async def test_condition_of_the_job_is_the_result(type_: str, why: str, pods: list[Object], wanted: type[Any]) -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about(), type_, why, pods=pods)
        assert isinstance(await check.poll(about(), uid, last=False), wanted)
        last = await check.poll(about(), uid, last=True)
        assert isinstance(last, Unknown if wanted is Pending else wanted)


async def test_condition_that_is_not_true_is_no_result() -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about(), "Complete")
        found = api.get(JOBS, job_name(about()), "default")
        assert found is not None
        found["status"]["conditions"][0]["status"] = "False"
        await api.put(JOBS, found)
        assert isinstance(await check.poll(about(), uid, last=False), Pending)


async def test_job_that_exceeds_the_deadline_of_its_template_fails() -> None:
    batch = about(template(activeDeadlineSeconds=30))
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(batch)
        uid = await finished(api, batch, "Failed", "DeadlineExceeded")
        assert isinstance(await check.poll(batch, uid, last=False), Fail)


async def test_reason_of_a_failure_is_the_end_of_the_log_of_the_container_that_failed_last() -> None:
    pods = [failed_pod("first"), failed_pod("12 of 30\nrequests failed\n", "2026-01-01T00:00:09Z"), {}]
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about(), "Failed", "BackoffLimitExceeded", pods=pods)
        found = await check.poll(about(), uid, last=False)
        assert found == Fail(f"the Job default/{job_name(about())} failed: 12 of 30 requests failed")
        assert not [request for request in api.requests if request.path.endswith("/log")]


async def test_reason_without_a_log_is_the_exit_code_and_that_of_a_pod_that_waits_is_why() -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about(), "Failed", pods=[failed_pod("")])
        found = await check.poll(about(), uid, last=False)
        assert isinstance(found, Fail)
        assert found.reason.endswith("the container smoke exited with 3 (Error)")
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        await api.put(
            PODS, {**(api.get(PODS, "p0", "default") or {}), "status": {"containerStatuses": [{"state": waiting}]}}
        )
        uid = await finished(api, about())
        last = await check.poll(about(), uid, last=True)
        assert isinstance(last, Unknown)
        assert "has not finished: ImagePullBackOff: no such image" in last.reason


async def test_pods_that_the_job_does_not_control_say_nothing_about_it() -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about(), "Failed", pods=[failed_pod("forged")])
        pod = api.get(PODS, "p0", "default")
        assert pod is not None
        pod["metadata"]["ownerReferences"] = []
        await api.put(PODS, pod)
        found = await check.poll(about(), uid, last=False)
        assert isinstance(found, Fail)
        assert "forged" not in found.reason


async def test_deleted_or_replaced_job_is_unknown_and_an_unreadable_one_is_read_again() -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        assert isinstance(await check.poll(about(), "u", last=False), Unknown)
        await check.start(about())
        assert isinstance(await check.poll(about(), "other", last=False), Unknown)
        api.fault(path, answer(500, "InternalError"), times=9)
        assert isinstance(await check.poll(about(), "u", last=False), Pending)
        assert isinstance(await check.poll(about(), "u", last=True), Unknown)


async def test_job_that_somebody_deletes_is_unknown_before_it_is_gone_unless_it_has_ended() -> None:
    """The API server keeps it until its pods are deleted."""
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        await check.start(about())
        uid = await finished(api, about())
        found = api.get(JOBS, job_name(about()), "default")
        assert found is not None
        found["metadata"] |= {"deletionTimestamp": rfc3339(NOW), "finalizers": ["foregroundDeletion"]}
        await api.put(JOBS, found)
        answered = await check.poll(about(), uid, last=False)
        assert answered == Unknown(f"the Job default/{job_name(about())} is being deleted")
        assert isinstance(await check.start(about()), NotStarted)
        await finished(api, about(), "Complete")
        assert isinstance(await check.poll(about(), uid, last=False), Pass)


@pytest.mark.parametrize(
    ("state", "left"),
    [(CheckState.PASSED, 0), (CheckState.UNKNOWN, 0), (CheckState.RUNNING, 0), (CheckState.FAILED, 1)],
)
async def test_end_deletes_the_job_with_its_uid_unless_it_failed(state: CheckState, left: int) -> None:
    async with serving() as (api, client):
        check = JobCheckRunner(client, lambda: NOW)
        started = await check.start(about())
        assert isinstance(started, Started)
        batch = about()
        status = msgspec.structs.replace(
            batch.change_pod.status, checks=(CheckResult("smoke", Phase.POST, state, handle=started.handle),)
        )
        ended = Subject(
            msgspec.structs.replace(batch.change_pod, status=status),
            batch.release, batch.check, batch.phase, batch.started, batch.deadline,
        )  # fmt: skip
        await check.end(ended, started.handle)
        await check.end(ended, started.handle)
        assert len(api.all(JOBS)) == left
