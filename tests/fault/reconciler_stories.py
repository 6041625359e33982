"""Releases from beginning to end, and what must be true then whatever happens to the reconciler meanwhile."""

from collections.abc import Callable, Coroutine

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS
from tests.fault.reconciler_cluster import Cluster, version

Chapter = Callable[[Cluster], Coroutine[None, None, None]]


async def numbers(cluster: Cluster) -> list[int]:
    return sorted(int(record["metadata"]["name"].rpartition("--x--")[2]) for record in await cluster.all(CHANGE_PODS))


async def verified(cluster: Cluster) -> list[str]:
    return [pod["pod"] for record in await cluster.all(CHANGE_PODS) for pod in record["spec"]["podInfos"]]


async def good_release(cluster: Cluster) -> None:
    await cluster.release(version("v1"))
    await cluster.until_states(v1="Success")
    assert await numbers(cluster) == [1, 2]
    pods = await verified(cluster)
    assert len(pods) == len(set(pods))
    assert (await cluster.deployment())["metadata"]["labels"][labels.DEFENSE_STATUS] == labels.PROCESSED


async def suspended_and_repaired(cluster: Cluster) -> None:
    """After a good release."""
    await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
    await cluster.until_states(v1="Suspend")
    await cluster.until(lambda: labelled(cluster, True), "the suspend label")
    await cluster.release(version("v2"), repair=True)
    await cluster.until_states(v2="Success")
    await cluster.until(lambda: labelled(cluster, False), "the end of the suspension")
    assert labels.IGNORED_SUSPEND not in (await cluster.deployment())["metadata"]["labels"]


async def rolled_back(cluster: Cluster) -> None:
    """After a good release."""
    await cluster.release(version("v2"), image="nosuch")
    await cluster.until_states(v1="Success", v2="Failed")
    deployment = await cluster.deployment()
    assert deployment["metadata"]["labels"][labels.VERSION] == version("v1")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"


async def labelled(cluster: Cluster, expected: bool) -> bool:
    return (labels.SUSPEND in (await cluster.deployment())["metadata"]["labels"]) == expected


STORIES = ((good_release,), (good_release, suspended_and_repaired), (good_release, rolled_back))
