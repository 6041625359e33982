"""A request without an answer, and a request of somebody else that has no answer yet."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkload
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.workload_requests import Action, Request
from altershield.views.asking import RequestError, ask
from altershield.views.current_user import user
from altershield.views.finding import batch_of, current
from altershield.views.selection import parse
from tests.fault.reconciler_cluster import Cluster, running_cluster
from tests.support.polling import until
from tests.unit.altershield.releases.builders import V1, V2, release

MINE = Request("Approve", "alice", "seen")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


async def stored(cluster: Cluster, made: ChangeWorkload) -> str:
    obj = msgspec.to_builtins(made)
    obj["metadata"] = {"name": made.metadata.name, "labels": {"app.kubernetes.io/deployment-name": "sleep"}}
    await cluster.admin.create(CHANGE_WORKLOADS, obj, "shop")
    return made.metadata.name


async def only_release(cluster: Cluster, argument: str = "sleep") -> ChangeWorkload:
    """Store a release, and find it as the current one of the workload that the argument names."""
    await stored(cluster, release(V1))
    (target,) = parse([argument])
    return await current(cluster.admin, "shop", target)


async def test_request_that_nobody_answers_stays_stored_and_the_error_says_what_to_check(cluster: Cluster) -> None:
    found = await only_release(cluster, "deploy/sleep")
    with pytest.raises(RequestError, match=r"no reconciler has carried out the request Approve .* kubectl get lease"):
        await ask(cluster.admin, found, MINE, 1.0)
    other = Request("Resume", "bob")
    with pytest.raises(RequestError, match=r"the request Approve by alice .* yours was not stored"):
        await ask(cluster.admin, found, other, 1.0)
    (now,) = await cluster.all(CHANGE_WORKLOADS)
    assert now["status"]["request"]["verb"] == "Approve"

    async def answered() -> bool:
        answer = {"verb": "Resume", "by": "bob", "result": "Done", "outcome": "done"}
        (now,) = await cluster.all(CHANGE_WORKLOADS)
        request = now["status"].get("request")
        if request is not None:
            actions = [*now["status"].get("actions", []), {**answer, "verb": request["verb"], "by": request["by"]}]
            await cluster.set_status(CHANGE_WORKLOADS, found.metadata.name, {"request": None, "actions": actions})
        return len(now["status"].get("actions", [])) > 1

    answering = asyncio.create_task(until(answered, "both answers", 20, pause=0.05))
    answer = await ask(cluster.admin, found, other, 15.0)
    await answering
    assert answer.action == Action("Resume", "bob", "", "", "Done", "done")


async def test_request_about_a_deleted_release_says_so(cluster: Cluster) -> None:
    found = await only_release(cluster)
    await cluster.admin.delete(CHANGE_WORKLOADS, found.metadata.name, "shop")
    with pytest.raises(RequestError, match="was deleted before its request was carried out"):
        await ask(cluster.admin, found, MINE, 5.0)


async def test_verdict_on_an_unknown_pod_names_the_namespace_in_the_command(cluster: Cluster) -> None:
    with pytest.raises(RequestError, match=r"kubectl get changepods -n shop -o wide$"):
        await batch_of(cluster.admin, "shop", "none")


async def test_request_is_not_made_about_a_newer_release_of_the_same_version(cluster: Cluster) -> None:
    found = await only_release(cluster)
    await cluster.admin.patch(CHANGE_WORKLOADS, {"spec": {"workloadGeneration": 7}}, found.metadata.name, "shop")
    with pytest.raises(RequestError, match="was released again meanwhile, so the request was not made"):
        await ask(cluster.admin, found, MINE, 5.0)
    (now,) = await cluster.all(CHANGE_WORKLOADS)
    assert "request" not in now.get("status", {})


async def test_the_newest_release_is_the_current_one_and_a_kind_is_asked_for_if_needed(cluster: Cluster) -> None:
    old, new = release(V1), release(V2)
    newer = msgspec.structs.replace(new, spec=msgspec.structs.replace(new.spec, create_time_unix=2_000_000_000))
    await stored(cluster, old)
    name = await stored(cluster, newer)
    (target,) = parse(["sleep"])
    assert (await current(cluster.admin, "shop", target)).metadata.name == name
    await stored(cluster, release(V1, kind="StatefulSet"))
    with pytest.raises(Exception, match="name deployment/sleep or statefulset/sleep"):
        await current(cluster.admin, "shop", target)
    assert await user(cluster.admin)
