"""The reconciler crashes after it has stored the status `Suspend`, and before it writes the label `suspend`."""

import asyncio
from pathlib import Path

import msgspec
from aiohttp import web

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from gatekeeper import projection
from kube_base.resources import DEPLOYMENTS
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, running_cluster
from tests.fault.reconciler_stories import good_release, labelled
from tests.unit.gatekeeper import reviews
from tests.unit.gatekeeper.reviews import StaticListers


class Crash:
    """Kills the reconciler when it writes the label."""

    def __init__(self) -> None:
        self.struck = asyncio.Event()

    async def __call__(self, request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if request.method == "PATCH" and b"defense.antgroup.com~1suspend" in await request.read():
            self.struck.set()
            await asyncio.Event().wait()
        return await go_on()


async def answer(cluster: Cluster) -> Object:
    """The gatekeeper's answer to the next release."""
    stored = await cluster.deployment()
    changed = msgspec.json.decode(msgspec.json.encode(stored))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    found = [projection.read(msgspec.json.encode(each)) for each in await cluster.all(CHANGE_WORKLOADS)]
    listers = StaticListers(releases={f"{each.metadata.namespace}/{each.metadata.name}": each for each in found})
    with reviews.about_kind(DEPLOYMENTS):
        return reviews.ask(reviews.VALIDATE, reviews.review(changed, stored, namespace=cluster.namespace), listers)


async def test_release_is_denied_although_the_reconciler_crashed_before_it_wrote_the_label(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("told")
        crash = Crash()
        async with cluster.reconciler():
            await good_release(cluster)
            assert (await answer(cluster))["allowed"]
            cluster.set_fault(crash)
            await cluster.judge((await cluster.all(CHANGE_PODS))[0], "unpass")
            await crash.struck.wait()
        await cluster.until_states(v1="Suspend")
        assert labels.SUSPEND not in (await cluster.deployment())["metadata"]["labels"]
        assert (await answer(cluster))["status"]["message"] == "deployment sleep is suspended"
        cluster.set_fault(None)
        async with cluster.reconciler(identity="two"):
            await cluster.until(lambda: labelled(cluster, True), "the suspend label")
        assert (await answer(cluster))["status"]["message"] == "deployment sleep is suspended"
