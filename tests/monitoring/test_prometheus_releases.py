"""Releases on the sandbox that a check by PromQL judges, with the real Prometheus and restarts of the reconciler."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.check_specs import CheckSpec, OnUnknown, PrometheusCheck
from altershield.api.policy import DefensePolicy, DefensePolicySpec
from altershield.api.resources import CHANGE_PODS, DEFENSE_POLICIES
from kube_base.meta import ObjectMeta
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.releases import batches, condition, until_state
from tests.monitoring.conftest import program
from tests.monitoring.exporter import Exporter, scraped

pytestmark = [pytest.mark.xdist_group("monitoring")]

V1, V2 = version("v1"), version("v2")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.close()


async def apply_policy(cluster: Cluster, url: str, on_unknown: OnUnknown, **fields: Any) -> None:
    check = PrometheusCheck(
        **{"url": url, "query": "failures", "max": "1", "interval_seconds": 1, "samples": 3, "lag_seconds": 2, **fields}
    )
    spec = DefensePolicySpec(checks=(CheckSpec("errors", timeout_seconds=25, on_unknown=on_unknown, prometheus=check),))
    policy = DefensePolicy(ObjectMeta(name="gate", namespace=cluster.namespace), spec)
    await cluster.admin.create(DEFENSE_POLICIES, policy, cluster.namespace)


async def until_accepted(cluster: Cluster, status: str) -> dict[str, Any]:
    return await cluster.until_condition(DEFENSE_POLICIES, "gate", "Accepted", status=status)


async def test_release_passes_while_the_metric_is_good_and_is_suspended_after_it_turns_bad(
    cluster: Cluster, exporter: Exporter, tmp_path: Path
) -> None:
    with scraped(exporter, tmp_path, program("prometheus")) as url:
        async with cluster.reconciler():
            await apply_policy(cluster, url, OnUnknown.FAIL)
            await until_accepted(cluster, "True")
            await cluster.release(V1)
            found = await until_state(cluster, V1, "Success")
            assert condition(found, "Checked") == ("True", "AllChecked")
            exporter.value = "7"
            await asyncio.sleep(3)
            await cluster.release(V2)
            found = await until_state(cluster, V2, "Suspend")
    assert condition(found, "Verified") == ("False", "FailedByCheck")
    failed = found["status"]["defenseCheckFailPods"][0]
    assert failed["message"] == "errors: 7 is above max 1 (1 sample failed, 0 may fail)"


async def test_check_goes_on_where_the_reconciler_stopped(cluster: Cluster, exporter: Exporter, tmp_path: Path) -> None:
    with scraped(exporter, tmp_path, program("prometheus")) as url:
        async with cluster.reconciler():
            await apply_policy(cluster, url, OnUnknown.FAIL, samples=6)
            await until_accepted(cluster, "True")
            await cluster.release(V1, replicas=1)

            async def running() -> bool:
                return any(each["status"].get("checks") for each in await batches(cluster) if each.get("status"))

            await cluster.until(running, "the check running")
        (before,) = await batches(cluster)
        await asyncio.sleep(2)
        async with cluster.reconciler(identity="two"):
            await until_state(cluster, V1, "Success")
        (after,) = await batches(cluster)
    (first,), (last,) = before["status"]["checks"], after["status"]["checks"]
    assert (first["state"], last["state"]) == ("Running", "Passed")
    assert first["startTimeUnix"] == last["startTimeUnix"]


async def test_target_that_is_down_makes_the_check_unknown_and_the_policy_decides(
    cluster: Cluster, exporter: Exporter, tmp_path: Path
) -> None:
    exporter.up = False
    with scraped(exporter, tmp_path, program("prometheus")) as url:
        async with cluster.reconciler():
            await apply_policy(cluster, url, OnUnknown.HOLD)
            await until_accepted(cluster, "True")
            await cluster.release(V1, replicas=1)

            async def held() -> bool:
                return [condition(each, "Verified") for each in await batches(cluster)] == [("Unknown", "Held")]

            await cluster.until(held, "the batch held")
            (batch,) = await batches(cluster)
            assert "the last one that is not: query: no data" in batch["status"]["checks"][0]["reason"]
            await cluster.judge(batch, "pass")
            await until_state(cluster, V1, "Success")


async def test_policy_with_an_unknown_placeholder_is_not_accepted(cluster: Cluster) -> None:
    async with cluster.reconciler():
        await apply_policy(cluster, "http://127.0.0.1:9", OnUnknown.FAIL, query='up{pod="{{node}}"}')
        found = await until_accepted(cluster, "False")
        assert found["reason"] == "UnknownPlaceholder"
        assert "{{node}}" in found["message"]
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        assert not any(each["status"].get("checks") for each in await cluster.all(CHANGE_PODS))
