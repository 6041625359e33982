"""Notifications of releases on the sandbox, with the service account of production, and restarts of the reconciler."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.check_specs import OnUnknown
from altershield.api.policy import DefensePolicy, DefensePolicySpec
from altershield.api.resources import CHANGE_WORKLOADS, DEFENSE_POLICIES, RELEASE_OVERRIDES
from command.demo.sample import MISSING_IMAGE
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.releases import apply_policy, batches, condition, until_state, use_override
from tests.unit.reconciler.notifications.receiving import Inbox

V1, V2 = version("v1"), version("v2")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with Inbox().serving() as made:
        yield made


@pytest.fixture
def file(tmp_path: Path, inbox: Inbox) -> Path:
    path = tmp_path / "receivers.yaml"
    configure(path, inbox, "cloudevents")
    return path


def configure(path: Path, inbox: Inbox, *types: str) -> None:
    path.write_text(json.dumps({"receivers": [{"name": type_, "type": type_, "url": inbox.url} for type_ in types]}))


def events(inbox: Inbox) -> list[str]:
    return [body["data"]["event"] for _, _, body in inbox.requests]


async def until_notified(cluster: Cluster, count: int) -> list[str]:
    found: list[str] = []

    async def met() -> bool:
        found[:] = [
            entry
            for release in await cluster.all(CHANGE_WORKLOADS)
            for entry in release.get("status", {}).get("notified", ())
        ]
        return len(found) == count

    await cluster.until(met, f"{count} notifications stored")
    return found


async def test_suspension_by_a_person_is_told_once_by_all_leaders_together(
    cluster: Cluster, inbox: Inbox, file: Path
) -> None:
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        assert inbox.requests == []
        await cluster.judge((await batches(cluster))[0], "unpass")
        await until_state(cluster, V1, "Suspend")
        await until_notified(cluster, 1)
    async with cluster.reconciler(notifications=file, identity="two"):
        await until_state(cluster, V1, "Suspend")
        await asyncio.sleep(1)
    assert events(inbox) == ["suspended"]
    data: dict[str, Any] = inbox.requests[0][2]["data"]
    assert (data["namespace"], data["kind"], data["workload"], data["version"]) == ("shop", "Deployment", "sleep", V1)
    assert "find error" in data["message"]


async def test_event_while_the_receiver_is_down_is_told_by_the_next_leader(
    cluster: Cluster, inbox: Inbox, file: Path
) -> None:
    inbox.statuses = [503] * 1000
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.judge((await batches(cluster))[0], "unpass")
        await until_state(cluster, V1, "Suspend")
    inbox.statuses, inbox.requests[:] = [], []
    async with cluster.reconciler(notifications=file, identity="two"):
        await until_notified(cluster, 1)
    assert events(inbox) == ["suspended"]


async def test_receiver_that_is_removed_while_a_release_names_it_is_replaced_and_the_policy_says_so(
    cluster: Cluster, inbox: Inbox, tmp_path: Path
) -> None:
    file = tmp_path / "receivers.yaml"
    common = {"type": "cloudevents", "url": inbox.url}
    default = {"name": "default", **common, "url": f"{inbox.url}/default"}
    file.write_text(json.dumps({"receivers": [{"name": "shop", **common, "selection": "named"}, default]}))

    async def policy_reason() -> str:
        found = await cluster.get(DEFENSE_POLICIES, "own")
        return condition(found, "Accepted")[1] if found is not None else ""

    async def until_reason(reason: str) -> None:
        async def met() -> bool:
            return await policy_reason() == reason

        await cluster.until(met, f"the policy to be {reason}")

    inbox.statuses = [503] * 1000
    async with cluster.reconciler(notifications=file):
        metadata = ObjectMeta(name="own", namespace=cluster.namespace)
        policy = DefensePolicy(metadata, DefensePolicySpec(notify=("shop",)))
        await cluster.admin.create(DEFENSE_POLICIES, policy, cluster.namespace)
        await until_reason("Valid")
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.judge((await batches(cluster))[0], "unpass")
        await until_state(cluster, V1, "Suspend")

        async def tried() -> bool:
            return len(inbox.requests) > 0

        await cluster.until(tried, "an attempt to tell the receiver")
    assert {path for path, _, _ in inbox.requests} == {"/"}
    inbox.statuses, inbox.requests[:] = [], []
    file.write_text(json.dumps({"receivers": [default]}))
    for identity in ("two", "three"):
        async with cluster.reconciler(notifications=file, identity=identity):
            assert [entry.rpartition("/")[2] for entry in await until_notified(cluster, 1)] == ["default"]
            await until_reason("UnknownReceiver")
    assert [path for path, _, _ in inbox.requests] == ["/default"]
    assert (await until_state(cluster, V1, "Suspend"))["spec"]["policy"]["notify"] == ["shop"]


async def test_rollback_is_told_with_its_reason(cluster: Cluster, inbox: Inbox, file: Path) -> None:
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.release(V2, image=MISSING_IMAGE)
        await until_state(cluster, V2, "Failed")
        await until_notified(cluster, 1)
    assert events(inbox) == ["rolled-back"]
    assert inbox.requests[0][2]["data"]["version"] == V2


async def test_override_is_told_once_by_all_leaders_together_also_if_it_is_deleted(
    cluster: Cluster, inbox: Inbox, file: Path
) -> None:
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await use_override(cluster, V2)
        await cluster.release(V2, image="busybox:2")
        await until_state(cluster, V2, "Success")
        await until_notified(cluster, 1)
    async with cluster.reconciler(notifications=file, identity="two"):
        await cluster.until_leader("two")
        await cluster.admin.delete(RELEASE_OVERRIDES, "fix", cluster.namespace)
        await cluster.judge((await batches(cluster))[-1], "unpass")
        await until_state(cluster, V2, "Suspend")
        await until_notified(cluster, 2)
    assert events(inbox) == ["override-used", "suspended"]
    data: dict[str, Any] = inbox.requests[0][2]["data"]
    text = f"ReleaseOverride {cluster.namespace}/fix let it pass ReleaseFreeze shop/incident"
    assert (data["version"], data["message"]) == (V2, f"asked for by ann (the fix of incident 7): {text}")


async def test_batch_held_by_a_check_without_a_result_needs_approval(
    cluster: Cluster, inbox: Inbox, file: Path
) -> None:
    async with cluster.reconciler(notifications=file):
        await apply_policy(cluster, "http://127.0.0.1:9/check", OnUnknown.HOLD)
        await cluster.release(V1)
        await until_notified(cluster, 1)
        assert events(inbox) == ["approval-needed"]
        assert "the check smoke has no result" in inbox.requests[0][2]["data"]["message"]
        for batch in await batches(cluster):
            await cluster.judge(batch, "pass")
        await until_state(cluster, V1, "Success")
    assert events(inbox) == ["approval-needed"]


async def test_ungated_release_is_told(cluster: Cluster, inbox: Inbox, file: Path) -> None:
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.until_after_the_second_of_creation()
        await cluster.set_image("other")
        await until_notified(cluster, 1)
    assert events(inbox) == ["ungated"]


async def test_alert_begins_with_the_suspension_and_ends_with_the_repair(
    cluster: Cluster, inbox: Inbox, file: Path
) -> None:
    configure(file, inbox, "alertmanager")
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.judge((await batches(cluster))[0], "unpass")
        await until_notified(cluster, 1)
        await cluster.release(V2, repair=True)
        await until_state(cluster, V2, "Success")

        async def ended() -> bool:
            return len(inbox.requests) == 2

        await cluster.until(ended, "the alert ended")
    begun, end = (body[0] for _, _, body in inbox.requests)
    assert begun["labels"] == end["labels"]
    assert end["endsAt"] < begun["endsAt"]


async def test_receiver_that_never_answers_delays_no_release(cluster: Cluster, inbox: Inbox, file: Path) -> None:
    inbox.hang = True
    async with cluster.reconciler(notifications=file):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await cluster.judge((await batches(cluster))[0], "unpass")
        await until_state(cluster, V1, "Suspend")
        await cluster.release(V2, repair=True)
        await until_state(cluster, V2, "Success")
    assert await cluster.get(DEPLOYMENTS, "sleep") is not None
