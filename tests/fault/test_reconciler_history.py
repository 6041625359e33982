"""The history of workloads, with faults of the API and changes by other users."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from altershield.api import labels
from altershield.api.policy import AppliedPolicy
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.releases import history
from altershield.releases.history import Entry
from kube_base.resources import CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS
from tests.fault.reconciler_cluster import Cluster, Object, is_write, running_cluster, version
from tests.fault.reconciler_stories import (
    good_release,
    kept_history,
    policy_with_rollback,
    second_release,
    until_history,
)
from tests.fault.releases import use_override
from tests.support.polling import until
from tests.support.workloads import GROUP_KINDS

ENTRY = "sleep--x--"


async def entries(cluster: Cluster) -> dict[str, Entry]:
    found = [history.read(msgspec.json.encode(each)) for each in await cluster.all(history.RESOURCE)]
    return {each.version: each for each in found}


async def request_rollback(cluster: Cluster, present: str, to: str = "") -> None:
    status: Object = {"status": "Rollback"} | ({"rollbackTo": to} if to else {})
    await cluster.set_status(CHANGE_WORKLOADS, f"{ENTRY}{version(present)}", status)


@contextlib.asynccontextmanager
async def shop(directory: Path, *, garbage: bool = False) -> AsyncIterator[Cluster]:
    async with running_cluster(directory, garbage=garbage) as cluster:
        await cluster.go_to("shop")
        yield cluster


async def test_version_released_again_keeps_its_entry(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        (first,) = (await entries(cluster)).values()
        await second_release(cluster)
        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        again = (await entries(cluster))[version("v1")]
        assert again.metadata.uid == first.metadata.uid
        assert again.revision > first.revision
        assert [(each.number, each.way) for each in again.releases] == [(1, "Release"), (3, "Again")]
        known = first.record.evidence
        assert known is not None
        assert (known.replicas, known.pods, known.failures, known.rules) == (2, 2, (), AppliedPolicy())
        assert again.releases[0] == msgspec.structs.replace(
            first.record, evidence=msgspec.structs.replace(known, rules=None)
        )
        assert await kept_history(cluster) == {version("v1"): "Success", version("v2"): "Success"}


async def test_release_that_is_replaced_before_its_end_is_kept(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler(start_timeout=60.0):
        await good_release(cluster)
        await cluster.release(version("v2"), image="nosuch")
        await cluster.until_states(v1="Success", v2="Running")
        await cluster.release(version("v3"), image="busybox:3")
        await cluster.until_states(v3="Success")
        found = await entries(cluster)
        kept = {each.record.number: (name, each.record.state, each.record.way) for name, each in found.items()}
        assert kept == {
            1: (version("v1"), "Success", "Release"),
            2: (version("v2"), "Running", "Release"),
            3: (version("v3"), "Success", "Release"),
        }


async def test_later_failure_changes_the_entry(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
        await until_history(cluster, v1="Suspend")
        (entry,) = (await entries(cluster)).values()
        assert entry.record.reason == "FailedByPerson"
        evidence = entry.record.evidence
        assert evidence is not None
        assert (evidence.failed_by, len(evidence.failures), evidence.pods) == ("FailedByPerson", 1, 2)
        assert evidence.failures[0].place in (1, 2)
        assert "find error" in entry.record.message


async def test_rollback_takes_the_template_from_the_history_if_nothing_else_holds_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        await cluster.admin.patch(DEPLOYMENTS, {"spec": {"revisionHistoryLimit": 0}}, "sleep", "shop")
        await second_release(cluster)

        async def gone() -> bool:
            return len(await cluster.all(REPLICA_SETS)) == 1

        await cluster.until(gone, "the ReplicaSet of the first version to be deleted")
        await request_rollback(cluster, "v2")  # the last version that passed
        await cluster.until_rolled_back()
        deployment = await cluster.deployment()
        template = deployment["spec"]["template"]
        assert template["spec"]["containers"][0]["image"] == "busybox"
        assert template["metadata"]["labels"][labels.VERSION] == version("v1")
        await until_history(cluster, v1="Success", v2="Failed")


async def test_automatic_rollback_takes_the_template_from_the_history(tmp_path: Path) -> None:
    """The release came up, was a Success, and failed later, under a policy with `onFailure: rollback`."""
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await policy_with_rollback(cluster)
        await good_release(cluster)
        await cluster.admin.patch(DEPLOYMENTS, {"spec": {"revisionHistoryLimit": 0}}, "sleep", "shop")
        await second_release(cluster)

        async def gone() -> bool:
            return len(await cluster.all(REPLICA_SETS)) == 1

        await cluster.until(gone, "the ReplicaSet of the first version to be deleted")
        own = [each for each in await cluster.all(CHANGE_PODS) if version("v2") in each["metadata"]["name"]]
        await cluster.judge(own[0], "unpass")
        await cluster.until_rolled_back()
        assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"
        await until_history(cluster, v1="Success", v2="Failed")


async def test_rollback_to_an_edited_entry_is_refused(tmp_path: Path) -> None:
    """`data` is immutable, but an entry can be replaced by another one with the same name."""
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        await cluster.admin.patch(DEPLOYMENTS, {"spec": {"revisionHistoryLimit": 0}}, "sleep", "shop")
        await second_release(cluster)
        name = f"{ENTRY}{version('v1')}"
        entry = await cluster.get(history.RESOURCE, name)
        assert entry is not None
        await cluster.admin.delete(history.RESOURCE, name, "shop")
        entry["data"]["spec"]["template"]["spec"]["containers"][0]["image"] = "evil"
        entry["metadata"] = {
            key: entry["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")
        }
        await cluster.admin.create(history.RESOURCE, entry, "shop")
        await request_rollback(cluster, "v2")
        condition = await cluster.until_condition(
            CHANGE_WORKLOADS, f"{ENTRY}{version('v2')}", "RolledBack", reason="NoTarget"
        )
        assert "does not exist any more" in condition["message"] or "changed" in condition["message"]
        assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:2"


async def test_entries_of_an_orphaned_workload_are_adopted(tmp_path: Path) -> None:
    async with shop(tmp_path, garbage=True) as cluster, cluster.reconciler():
        await good_release(cluster)
        await cluster.admin.delete(DEPLOYMENTS, "sleep", "shop", propagation="Orphan")

        async def orphaned() -> bool:
            there = await cluster.get(DEPLOYMENTS, "sleep") is not None
            return not there and all(not each.metadata.owner_references for each in (await entries(cluster)).values())

        await until(orphaned, "the entries to have no owner")
        await cluster.release(version("v2"), image="busybox:2")
        uid = (await cluster.deployment())["metadata"]["uid"]

        async def adopted() -> bool:
            found = await entries(cluster)
            return len(found) == 2 and all(
                each.is_of(GROUP_KINDS["Deployment"], "sleep", uid) for each in found.values()
            )

        await cluster.until(adopted, "the entries to be adopted")


async def test_entry_of_a_deleted_workload_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}}  # stands for the old workload
        uid = (await cluster.admin.create(CONFIG_MAPS, old, "shop"))["metadata"]["uid"]
        stale = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{ENTRY}{version('v1')}",
                "labels": history.entry_labels("sleep"),
                "annotations": {history.ANNOTATION: "{}"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "old", "uid": uid}],
            },
            "data": {"version": version("v1")},
            "revision": 1,
        }
        await cluster.admin.create(history.RESOURCE, stale, "shop")
        await good_release(cluster)
        (found,) = await cluster.all(history.RESOURCE)
        assert found["data"]["spec"]["template"]


async def test_object_of_somebody_else_with_the_name_of_an_entry_stays(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        other = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": f"{ENTRY}{version('v1')}"},
            "data": {"of": "somebody"},
            "revision": 1,
        }
        await cluster.admin.create(history.RESOURCE, other, "shop")
        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        (found,) = await cluster.all(history.RESOURCE)
        assert found["data"] == {"of": "somebody"}


async def test_entry_without_its_label_is_not_believed_and_is_created_again(tmp_path: Path) -> None:
    """The admission policy that protects entries is about objects with the label."""
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        name = f"{ENTRY}{version('v1')}"
        first = await cluster.get(history.RESOURCE, name)
        await cluster.admin.patch(history.RESOURCE, {"metadata": {"labels": None, "annotations": None}}, name, "shop")
        await second_release(cluster)
        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        await until_history(cluster, v1="Success", v2="Success")
        found = await cluster.get(history.RESOURCE, name)
        assert first is not None
        assert found is not None
        assert found["metadata"]["labels"] == history.entry_labels("sleep")
        assert found["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize("error", [web.HTTPForbidden, web.HTTPUnprocessableEntity, web.HTTPRequestEntityTooLarge])
async def test_release_ends_although_the_api_server_refuses_its_entry(
    tmp_path: Path, error: type[web.HTTPException], caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(request: web.Request, go_on: Callable[[], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if is_write(request) and "controllerrevisions" in request.path:
            return web.json_response({"kind": "Status", "message": "exceeded quota"}, status=error.status_code)
        return await go_on()

    async with shop(tmp_path) as cluster:
        cluster.set_fault(refuse)
        async with cluster.reconciler():
            await cluster.release(version("v1"))
            await cluster.until_states(v1="Success")
        assert await cluster.all(history.RESOURCE) == []
    assert "could not keep a version in the history" in caplog.text


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        pytest.param(
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook: connection refused",
            id="webhook down",
        ),
        pytest.param(409, "AlreadyExists", "denied", id="exists"),
        pytest.param(409, "Conflict", "denied", id="conflict"),
        pytest.param(429, "TooManyRequests", "denied", id="too many requests"),
    ],
)
async def test_failed_release_is_suspended_although_its_entry_is_refused_for_a_cause_that_is_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int, reason: str, message: str
) -> None:
    async def refuse(request: web.Request, go_on: Callable[[], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        if request.method == "POST" and "controllerrevisions" in request.path:
            return web.json_response({"kind": "Status", "reason": reason, "message": message}, status=code)
        return await go_on()

    async with shop(tmp_path) as cluster:
        cluster.set_fault(refuse)
        async with cluster.reconciler():
            await cluster.release(version("v1"), image="nosuch:1")
            await cluster.until_states(v1="Suspend")
    assert "could not keep a version in the history" in caplog.text


async def test_failed_release_is_suspended_although_a_finalizer_keeps_its_deleted_entry(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        name = f"{ENTRY}{version('v1')}"
        await cluster.admin.patch(history.RESOURCE, {"metadata": {"finalizers": ["backup.example/wait"]}}, name, "shop")
        await cluster.admin.delete(history.RESOURCE, name, "shop")
        await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
        await cluster.until_states(v1="Suspend")


async def test_limit_of_zero_keeps_nothing(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler(history_limit=0):
        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        assert await cluster.all(history.RESOURCE) == []


async def test_failed_versions_have_a_limit_of_their_own(tmp_path: Path) -> None:
    async with shop(tmp_path) as cluster, cluster.reconciler(history_limit=1):
        await good_release(cluster)
        for number in (2, 3):
            await cluster.release(version(f"v{number}"), image=f"nosuch:{number}")

            async def rolled_back(bad: str = version(f"v{number}")) -> bool:
                states = await cluster.states()
                return states.get(bad) == "Failed" and states.get(version("v1")) == "Success"

            await cluster.until(rolled_back, f"v{number} to be rolled back")
        await until_history(cluster, v1="Success", v3="Failed")


async def test_use_of_an_override_from_before_a_release_is_recorded_once(tmp_path: Path) -> None:
    """The request that used it failed elsewhere. The version is released later, and once more after another one."""
    v2 = version("v2")
    async with shop(tmp_path) as cluster, cluster.reconciler():
        await good_release(cluster)
        await use_override(cluster, v2, at="2026-01-01T00:00:00Z")

        async def recorded() -> list[str]:
            found = await cluster.get(CHANGE_WORKLOADS, f"{ENTRY}{v2}")
            return [each["verb"] for each in (found or {}).get("status", {}).get("actions", ())]

        await second_release(cluster)
        assert await recorded() == ["Override"]
        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        await second_release(cluster)
        assert await recorded() == []
        assert [each.verb for each in (await entries(cluster))[v2].record.actions] == ["Override"]
