"""Releases that the checks of a DefensePolicy judge."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from altershield.api import labels
from altershield.api.check_specs import CheckSpec, HealthCheck, HttpCheck, JobCheck, OnUnknown, Phase
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES
from kube_base.resources import EVENTS, JOBS, NAMESPACES
from kube_base.times import rfc3339
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, running_cluster, version
from tests.fault.releases import apply_check, apply_policy, batches, condition, release, until_state

V1, V2 = version("v1"), version("v2")


class Receiver:
    """A receiver of the check `http`. `answer` is the status and body of its answers."""

    def __init__(self) -> None:
        self.answer: tuple[int, Any] = (200, {})
        self.requests: list[Object] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        status, body = self.answer
        return web.json_response(body, status=status)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    app = web.Application()
    app.router.add_post("/check", found.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/check"
    yield found
    await runner.cleanup()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@pytest.mark.parametrize("phase", Phase)
async def test_release_that_the_check_passes_succeeds(cluster: Cluster, receiver: Receiver, phase: Phase) -> None:
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url, OnUnknown.FAIL, phase)
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Success")
        assert found["spec"]["policy"]["name"] == "gate"
        assert condition(found, "Checked") == ("True", "AllChecked")
        assert {each["status"]["message"] for each in await batches(cluster)} == {"PostFinish"}
        assert len(receiver.requests) == 2  # one for each batch


async def test_release_that_the_check_fails_is_suspended_and_says_why(cluster: Cluster, receiver: Receiver) -> None:
    receiver.answer = (200, {"verdict": "fail", "message": "3 of 9 orders lost"})
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url)
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Suspend")
        assert condition(found, "Verified") == ("False", "FailedByCheck")
        assert {pod["message"] for pod in found["status"]["defenseCheckFailPods"]} == {"smoke: 3 of 9 orders lost"}


@pytest.mark.parametrize(
    ("on_unknown", "state", "checked"),
    [(OnUnknown.PASS, "Success", "False"), (OnUnknown.FAIL, "Suspend", "")],
)
async def test_check_without_a_result_leads_to_what_the_policy_says(
    cluster: Cluster, receiver: Receiver, on_unknown: OnUnknown, state: str, checked: str
) -> None:
    receiver.answer = (503, {})
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url, on_unknown)
        await cluster.release(V1)
        found = await until_state(cluster, V1, state)
        assert condition(found, "Checked")[0] == checked


async def test_held_release_waits_for_a_person_and_a_restart_does_not_forget_it(
    cluster: Cluster, receiver: Receiver
) -> None:
    receiver.answer = (503, {})
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url, OnUnknown.HOLD)
        await cluster.release(V1, replicas=1)

        async def held() -> Object | None:
            found = [each for each in await batches(cluster) if condition(each, "Verified")[1] == "Held"]
            return found[0] if found else None

        await cluster.until(held, "a held batch")
    asked = len(receiver.requests)
    async with cluster.reconciler(identity="two"):
        batch = await cluster.until(held, "a held batch")
        assert batch is not None
        found = await cluster.get(CHANGE_WORKLOADS, batch["spec"]["changeWorkloadId"])
        assert found is not None
        assert found["status"]["status"] == "Running"
        results = [{**pod, "verdict": "pass"} for pod in batch["spec"]["podInfos"]]
        await cluster.admin.patch(
            CHANGE_PODS,
            {"status": {"podResults": results}},
            batch["metadata"]["name"],
            cluster.namespace,
            subresource="status",
        )
        await until_state(cluster, V1, "Success")
    assert len(receiver.requests) == asked, "a check that has ended is not asked again"


async def test_held_release_says_so_and_an_approval_lets_it_pass(cluster: Cluster, receiver: Receiver) -> None:
    receiver.answer = (503, {})
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url, OnUnknown.HOLD)
        await cluster.release(V1)

        async def all_held() -> bool:
            return [condition(each, "Verified")[1] for each in await batches(cluster)] == ["Held", "Held"]

        await cluster.until(all_held, "all pods are held")
        stalled = await cluster.until_condition(CHANGE_WORKLOADS, release(V1), "Stalled", reason="CheckHeld")
        assert stalled["message"].startswith("pods wait for the decision of a person: the check smoke has no result: ")
        request = {"verb": "Approve", "by": "jane", "reason": "I tested it"}
        await cluster.admin.patch(
            CHANGE_WORKLOADS, {"status": {"request": request}}, release(V1), cluster.namespace, subresource="status"
        )
        found = await until_state(cluster, V1, "Success")
        assert found["status"]["actions"][-1]["result"] == "Done"
        for batch in await batches(cluster):
            assert [each["by"] for each in batch["status"]["podResults"]] == ["jane"]


async def test_warning_event_about_a_pod_that_stays_ready_suspends_the_release(cluster: Cluster) -> None:
    async with cluster.reconciler():
        await apply_check(cluster, CheckSpec("events", health=HealthCheck(seconds=60)))
        await cluster.release(V1, replicas=1)

        async def begun() -> Object | None:
            return next(iter(await batches(cluster)), None)

        batch = await cluster.until(begun, "a batch")
        assert batch is not None
        pod = batch["spec"]["podInfos"][0]
        now = rfc3339(time.time() + 1)
        event = {
            "metadata": {"name": f"{pod['pod']}.1", "namespace": cluster.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["pod"],
                "namespace": cluster.namespace,
                "uid": pod["uid"],
            },
            "type": "Warning",
            "reason": "Unhealthy",
            "message": "Liveness probe failed: HTTP probe failed with statuscode: 503",
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        await cluster.admin.create(EVENTS, event, cluster.namespace)
        found = await until_state(cluster, V1, "Suspend")
        assert found["status"]["defenseCheckFailPods"][0]["message"] == (
            f"events: pod {pod['pod']}: Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 503"
        )


async def test_edit_of_a_policy_changes_later_releases_only(cluster: Cluster, receiver: Receiver) -> None:
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url)
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        receiver.answer = (200, {"verdict": "fail"})
        await cluster.admin.patch(DEFENSE_POLICIES, {"spec": {"checks": []}}, "gate", cluster.namespace)
        before = await cluster.get(CHANGE_WORKLOADS, (await batches(cluster))[0]["spec"]["changeWorkloadId"])
        assert before is not None
        assert len(before["spec"]["policy"]["checks"]) == 1
        asked = len(receiver.requests)
        await cluster.release(V2)
        await until_state(cluster, V2, "Success")
        assert len(receiver.requests) == asked


def job_check(image: str, timeout: int = 60) -> CheckSpec:
    pod = {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": image}]}
    template = {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    return CheckSpec("smoke", timeout_seconds=timeout, on_unknown=OnUnknown.FAIL, job=JobCheck(template))


async def test_reconciler_that_crashes_before_it_creates_a_job_creates_it_after_the_restart(cluster: Cluster) -> None:
    struck = asyncio.Event()

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if request.method == "POST" and request.path.endswith("/jobs"):
            struck.set()
            await asyncio.Event().wait()
        return await go_on()

    cluster.set_fault(fault)
    async with cluster.reconciler():
        await apply_check(cluster, job_check("busybox:completes-after-1s"))
        await cluster.release(V1, replicas=1)
        await struck.wait()
    (batch,) = await batches(cluster)
    (begun,) = batch["status"]["checks"]
    assert (begun["state"], begun.get("handle", "")) == ("Running", "")
    assert (await cluster.admin.list(JOBS, cluster.namespace, as_=dict)).items == []
    cluster.set_fault(lambda _, go_on: go_on())
    async with cluster.reconciler(identity="two"):
        await until_state(cluster, V1, "Success")
    (batch,) = await batches(cluster)
    assert batch["status"]["checks"][0]["state"] == "Passed"


async def test_check_whose_job_somebody_deletes_ends_at_the_next_poll_and_says_so(cluster: Cluster) -> None:
    async with cluster.reconciler():
        await apply_check(cluster, job_check("busybox:completes-after-300s", timeout=600))
        await cluster.release(V1, replicas=1)

        async def jobs() -> list[Object]:
            return (await cluster.admin.list(JOBS, cluster.namespace, as_=dict)).items

        found = await cluster.until(jobs, "the Job")
        await cluster.admin.delete(JOBS, found[0]["metadata"]["name"], cluster.namespace, propagation="Foreground")
        suspended = await until_state(cluster, V1, "Suspend")
        (pod,) = suspended["status"]["defenseCheckFailPods"]
        assert re.search(r"the Job shop/smoke-post-\S+ (is being|has been) deleted", pod["message"]), pod["message"]


async def test_reconciler_that_crashes_during_a_job_finds_it_again_and_creates_no_second_one(cluster: Cluster) -> None:
    created: set[str] = set()
    check = job_check("busybox:completes-after-3s")

    async def jobs() -> list[Object]:
        found: list[Object] = (await cluster.admin.list(JOBS, cluster.namespace, as_=dict)).items
        created.update(each["metadata"]["uid"] for each in found)
        return found

    async with cluster.reconciler():
        await apply_check(cluster, check)
        await cluster.release(V1, replicas=1)
        await cluster.until(jobs, "the Job")
    async with cluster.reconciler(identity="two"):
        await cluster.until(jobs, "the Job")
    async with cluster.reconciler(identity="three"):
        await until_state(cluster, V1, "Success")
        await jobs()
    assert len(created) == 1
    (batch,) = await batches(cluster)
    (result,) = batch["status"]["checks"]
    assert result["state"] == "Passed"
    assert {result["handle"]} == created


async def test_batch_whose_release_is_not_in_the_cache_yet_is_not_ended_without_its_checks(
    cluster: Cluster, receiver: Receiver
) -> None:
    """A namespace is governed again: its ChangePods are in the cache before its ChangeWorkloads."""
    receiver.answer = (503, {})
    hidden = False

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if hidden and request.method == "GET" and request.path.endswith("/changeworkloads"):
            await asyncio.sleep(1.0)
        return await go_on()

    async def running() -> bool:
        return len(await batches(cluster)) == 2 and len(receiver.requests) > 1

    cluster.set_fault(fault)
    async with cluster.reconciler() as manager:
        await apply_check(
            cluster, CheckSpec("smoke", http=HttpCheck(receiver.url), timeout_seconds=600, on_unknown=OnUnknown.FAIL)
        )
        await cluster.release(V1)
        await cluster.until(running, "two batches that are checked")
        await govern(cluster, None)

        async def forgotten() -> bool:
            return not len(manager.caches.batches) and not len(manager.caches.releases)

        await cluster.until(forgotten, "the reconciler to forget the objects of the namespace")
        hidden = True
        await govern(cluster, labels.GOVERNED_VALUE)

        async def known() -> bool:
            return len(manager.caches.releases) > 0

        await cluster.until(known, "the reconciler to know the release again")
        assert "ExecuteDone" not in {each["status"]["status"] for each in await batches(cluster)}
        receiver.answer = (200, {"verdict": "fail"})
        await until_state(cluster, V1, "Suspend")


async def govern(cluster: Cluster, value: str | None) -> None:
    await cluster.admin.patch(NAMESPACES, {"metadata": {"labels": {labels.GOVERNED: value}}}, cluster.namespace)


async def test_retry_asks_the_checks_of_a_batch_that_waits_again(cluster: Cluster, receiver: Receiver) -> None:
    receiver.answer = 200, {"verdict": "unknown", "message": "no data"}
    async with cluster.reconciler():
        await apply_policy(cluster, receiver.url, OnUnknown.HOLD, Phase.POST)
        await cluster.release(V1, replicas=1)

        async def held() -> bool:
            return [condition(each, "Verified")[1] for each in await batches(cluster)] == ["Held"]

        await cluster.until(held, "the batch held")
        first = receiver.requests[-1]["altershield"]["id"]
        receiver.answer = 200, {"verdict": "pass"}
        await cluster.set_status(CHANGE_WORKLOADS, release(V1), {"request": {"verb": "Retry", "by": "alice"}})
        found = await until_state(cluster, V1, "Success")
        assert [(each["verb"], each["result"]) for each in found["status"]["actions"]] == [("Retry", "Done")]
        assert receiver.requests[-1]["altershield"]["id"] != first, "a receiver that keeps its answers is asked anew"
