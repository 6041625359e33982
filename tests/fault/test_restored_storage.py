"""The storage of the API server is restored from a backup: objects, versions and resource versions are older."""

import time
from pathlib import Path

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS
from altershield.releases import history
from kube_base.resources import PODS
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.reconciler_stories import good_release

START_TIMEOUT = 1.5


async def test_release_after_the_backup_is_gone_and_nothing_is_changed(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("restored")
        async with cluster.reconciler():
            await good_release(cluster)
            backup = cluster.snapshot()
            await cluster.release(version("v2"))
            await cluster.until_states(v2="Success")
        await cluster.restore(backup)
        before = await cluster.deployment()

        async with cluster.reconciler(identity="two"):
            await cluster.until_states(v1="Success")
            entries = [each["metadata"]["name"] for each in await cluster.all(history.RESOURCE)]
            assert not [name for name in entries if name.endswith(version("v2"))], "the history is that of the backup"
            await cluster.release(version("v3"))
            await cluster.until_states(v3="Success")
    assert before["metadata"]["labels"][labels.VERSION] == version("v1")
    assert labels.SUSPEND not in before["metadata"]["labels"]


async def test_suspension_that_ended_after_the_backup_is_back_and_a_repair_ends_it(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("restored")
        async with cluster.reconciler():
            await good_release(cluster)
            await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
            await cluster.until_states(v1="Suspend")
            await until_label(cluster, present=True)
            backup = cluster.snapshot()
            await cluster.release(version("v2"), repair=True)
            await cluster.until_states(v2="Success")
        await cluster.restore(backup)

        async with cluster.reconciler(identity="two"):
            await until_label(cluster, present=True)
            assert await cluster.states() == {version("v1"): "Suspend"}
            await cluster.release(version("v2"), repair=True)
            await cluster.until_states(v2="Success")
            await until_label(cluster, present=False)


async def test_release_under_way_at_the_backup_is_rolled_back_at_once_if_its_pods_never_came_up(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("restored")
        async with cluster.reconciler():
            await good_release(cluster)
        async with cluster.reconciler(identity="two", start_timeout=60):
            await cluster.release(version("v2"), image="missing")
            await cluster.until_states(v1="Success", v2="Running")
            await cluster.until(lambda: has_pods(cluster, "v2"), "pods of v2")
            backup = cluster.snapshot()
            created = time.time()
            await cluster.release(version("v3"))
            await cluster.until_states(v3="Success")
            await cluster.until(lambda: is_past(created + START_TIMEOUT + 1), "the start timeout to be over")
        await cluster.restore(backup)

        async with cluster.reconciler(identity="three", start_timeout=START_TIMEOUT):
            await cluster.until_rolled_back()


async def until_label(cluster: Cluster, *, present: bool) -> None:
    async def met() -> bool:
        return (labels.SUSPEND in (await cluster.deployment())["metadata"]["labels"]) is present

    await cluster.until(met, f"the label suspend: {present}")


async def has_pods(cluster: Cluster, name: str) -> bool:
    pods = await cluster.all(PODS)
    return any(each["metadata"]["labels"].get(labels.VERSION) == version(name) for each in pods)


async def is_past(moment: float) -> bool:
    return time.time() > moment
