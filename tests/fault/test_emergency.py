"""What the reconciler still does after the steps of docs/operate.md#emergency. No webhooks are installed here."""

import asyncio
from pathlib import Path

from altershield.api import labels
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import OPS_CONFIG_INFOS
from kube_base.resources import NAMESPACES
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.reconciler_stories import good_release, is_paused, paused, policy_with_pause, suspended


async def test_reconciler_suspends_and_rolls_back_without_webhooks(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster, cluster.reconciler(start_timeout=1.5):
        await cluster.go_to("rolled-back")
        await good_release(cluster)
        await cluster.release(version("v2"), image="missing")
        await cluster.until_rolled_back()
        await cluster.go_to("suspended")
        await good_release(cluster)
        await suspended(cluster)


async def test_reconciler_changes_nothing_in_a_namespace_that_is_no_longer_governed(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("freed")
        async with cluster.reconciler(start_timeout=2.0) as manager:
            await good_release(cluster)
            await cluster.release(version("v2"), image="missing")
            await cluster.until_states(v1="Success", v2="Running")
            patch = {"metadata": {"labels": {labels.GOVERNED: None}}}
            await cluster.admin.patch(NAMESPACES, patch, cluster.namespace)

            async def freed() -> bool:
                return not manager.caches.governed(cluster.namespace)

            await cluster.until(freed, "the reconciler to know that the namespace is not governed")
            await asyncio.sleep(3.5)
            assert await cluster.states() == {version("v1"): "Success", version("v2"): "Running"}
            own = (await cluster.deployment())["metadata"]["labels"]
            assert own[labels.VERSION] == version("v2")
            assert labels.SUSPEND not in own


async def test_suspended_workload_stays_suspended_and_paused_when_the_settings_are_switched_off(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("paused")
        async with cluster.reconciler():
            await policy_with_pause(cluster)
            await good_release(cluster)
            await paused(cluster)
            for name in ("rollback", "blocking"):
                await cluster.setting(name, {"enable": False})
            await cluster.until(lambda: _are_off(cluster, "rollback", "blocking"), "both settings to be off")
            await asyncio.sleep(1.0)
            assert await is_paused(cluster, True)
            assert labels.SUSPEND in (await cluster.deployment())["metadata"]["labels"]


async def _are_off(cluster: Cluster, *settings: str) -> bool:
    found = [await cluster.get(OPS_CONFIG_INFOS, name, SYSTEM_NAMESPACE) or {} for name in settings]
    return all(each.get("status", {}).get("enable") is False for each in found)
