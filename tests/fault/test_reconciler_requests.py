"""Requests of people about releases that end, are superseded or begin again, and what the history keeps of them."""

from pathlib import Path

import msgspec

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.workload_requests import Action
from altershield.releases import history
from kube_base.resources import EVENTS
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.reconciler_stories import answered, good_release, labelled, second_release, suspended

RESUME = {"request": {"verb": "Resume", "by": "alice", "reason": "known"}}


def name_of(short: str) -> str:
    return f"sleep--x--{version(short)}"


async def kept_actions(cluster: Cluster, short: str) -> list[Action]:
    found = await cluster.get(history.RESOURCE, name_of(short))
    return list(history.read(msgspec.json.encode(found)).record.actions) if found is not None else []


async def reasons(cluster: Cluster) -> set[str]:
    return {each["reason"] for each in await cluster.all(EVENTS)}


async def test_history_keeps_who_decided_what_after_the_change_workload_is_gone(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster, cluster.reconciler():
        await cluster.go_to("shop")
        await good_release(cluster)
        await suspended(cluster)
        await answered(cluster, "Resume")
        (action,) = await kept_actions(cluster, "v1")
        assert (action.verb, action.by, action.result) == ("Resume", "alice", "Done")
        await second_release(cluster)
        assert set(await cluster.states()) == {version("v2")}
        assert await kept_actions(cluster, "v1") == [action]

        await cluster.release(version("v1"))
        await cluster.until_states(v1="Success")
        assert await kept_actions(cluster, "v1") == [action], "a later release of the version keeps them"


async def test_bypass_of_a_release_that_never_ends_is_in_the_history(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster, cluster.reconciler(start_timeout=60):
        await cluster.go_to("shop")
        await good_release(cluster)
        await suspended(cluster)
        await cluster.release(version("v2"), image="nosuch", repair=True)
        await cluster.until_states(v1="Suspend", v2="Running")
        await cluster.release(version("v3"), image="busybox:3", repair=True)
        await cluster.until_states(v3="Success")
        (action,) = await kept_actions(cluster, "v2")
        assert (action.verb, action.result) == ("Bypass", "Done")


async def test_request_that_waits_while_its_version_is_released_again_is_refused(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            await good_release(cluster)
            await suspended(cluster)
        await cluster.set_status(CHANGE_WORKLOADS, name_of("v1"), RESUME)  # no reconciler runs
        await cluster.release(version("v2"), image="busybox:2", repair=True)
        await cluster.release(version("v1"), repair=True)
        async with cluster.reconciler():

            async def refused() -> bool:
                found = await cluster.get(CHANGE_WORKLOADS, name_of("v1"))
                assert found is not None
                actions = found["status"].get("actions", [])
                return [(each["verb"], each["result"]) for each in actions if each["verb"] == "Resume"] == [
                    ("Resume", "Refused")
                ] and "request" not in found["status"]

            await cluster.until(refused, "the request to be refused")
            assert await labelled(cluster, True), "releases are still suspended"
            await cluster.until(lambda: said(cluster, "RequestNotCarriedOut"), "the Event")


async def said(cluster: Cluster, reason: str) -> bool:
    return reason in await reasons(cluster)
