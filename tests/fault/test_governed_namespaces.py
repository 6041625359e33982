"""A namespace that becomes governed: its objects arrive in the caches one resource after the other."""

import asyncio
import collections
from pathlib import Path

from aiohttp import web

from altershield.api import labels
from altershield.api.check_specs import CheckSpec, HealthCheck
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.resources import NAMESPACES
from tests.fault.reconciler_cluster import Cluster, GoOn, running_cluster, version
from tests.fault.releases import apply_check, release

V1 = version("v1")


async def govern(cluster: Cluster, value: str | None) -> None:
    await cluster.admin.patch(NAMESPACES, {"metadata": {"labels": {labels.GOVERNED: value}}}, cluster.namespace)


async def test_release_does_not_begin_before_the_policies_of_its_namespace_are_known(tmp_path: Path) -> None:
    slow = False

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if slow and request.method == "GET" and request.path.endswith("/shop/defensepolicies"):
            await asyncio.sleep(2.0)
        return await go_on()

    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        cluster.set_fault(fault)
        async with cluster.reconciler() as manager:
            await apply_check(cluster, CheckSpec("events", health=HealthCheck(seconds=1)))
            await govern(cluster, None)

            async def governed() -> bool:
                return manager.caches.governed("shop")

            async def ungoverned() -> bool:
                return not manager.caches.governed("shop") and not manager.caches.policies_of("shop")

            await cluster.until(ungoverned, "the reconciler to know that the namespace is not governed")
            slow = True
            await govern(cluster, labels.GOVERNED_VALUE)
            await cluster.until(governed, "the reconciler to know that the namespace is governed")
            await cluster.release(V1)

            async def begun() -> dict[str, object] | None:
                return await cluster.get(CHANGE_WORKLOADS, release(V1))

            found = await cluster.until(begun, "the release to begin")
            assert found is not None
            assert found["spec"].get("policy", {}).get("name") == "gate"  # type: ignore[attr-defined]


async def test_namespace_that_cannot_be_listed_does_not_hold_up_others(tmp_path: Path) -> None:
    asked: collections.Counter[str] = collections.Counter()

    async def fault(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if request.method == "GET" and "/namespaces/slow/" in request.path:
            asked[request.path_qs] += 1
            await asyncio.Event().wait()
        return await go_on()

    async with running_cluster(tmp_path) as cluster:
        cluster.set_fault(fault)
        async with cluster.reconciler():
            await cluster.until_leader("one")
            await cluster.go_to("slow")
            await cluster.go_to("shop")
            await cluster.release(V1)

            async def succeeded() -> bool:
                return (await cluster.states()).get(V1) == "Success"

            await cluster.until(succeeded, "the release to succeed")
            assert set(asked.values()) == {1}, "the reconciler gave up a list before it went on"
