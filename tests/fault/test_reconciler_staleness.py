"""A reconciler with outdated caches, as after an outage, does not roll back a release because of old data."""

import asyncio
import time
from pathlib import Path

from aiohttp import web

from altershield.api import labels
from altershield.api.meta import unix
from altershield.api.resources import PODS
from tests.fault.reconciler_cluster import Cluster, GoOn, Object, running_cluster, version
from tests.fault.reconciler_stories import good_release

START_TIMEOUT = 5.0  # pods with the image `slow` come up after two seconds; creation times are whole seconds


class Blindness:
    """A fault. While the event `set` is set, the reconciler's watch of pods is closed, and new ones are refused."""

    def __init__(self) -> None:
        self.set = asyncio.Event()

    async def __call__(self, request: web.Request, go_on: GoOn) -> web.StreamResponse:
        if "watch" not in request.query or not request.path.endswith("/pods"):
            return await go_on()
        if self.set.is_set():
            raise web.HTTPServiceUnavailable
        watching = asyncio.ensure_future(go_on())
        cut = asyncio.create_task(self.set.wait())
        try:
            await asyncio.wait((watching, cut), return_when=asyncio.FIRST_COMPLETED)
            if not watching.done() and request.transport is not None:
                request.transport.abort()
            return await watching
        finally:
            watching.cancel()
            cut.cancel()


async def test_pods_that_came_up_during_a_watch_outage_do_not_count_as_overdue(tmp_path: Path) -> None:
    blindness = Blindness()
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("behind")
        cluster.set_fault(blindness)
        async with cluster.reconciler(start_timeout=START_TIMEOUT) as manager:
            await good_release(cluster)
            await cluster.release(version("v2"), image="slow")

            async def one_is_known() -> bool:
                return any(pod.version == version("v2") for pod in manager.caches.pods.all())

            await cluster.until(one_is_known, "the reconciler to know of a new pod")
            blindness.set.set()
            await cluster.until(lambda: all_overdue_and_up(cluster), "the pods to come up, and to be overdue if not")

            assert (await cluster.states())[version("v2")] in ("Running", "Success"), (
                "the reconciler must read the pods itself"
            )
            blindness.set.clear()
            await cluster.until_states(v2="Success")


async def all_overdue_and_up(cluster: Cluster) -> bool:
    pods = [pod for pod in await cluster.all(PODS) if pod["metadata"]["labels"][labels.VERSION] == version("v2")]
    long_ago = time.time() - START_TIMEOUT - 2
    return len(pods) == 2 and all(unix(pod["metadata"]["creationTimestamp"]) < long_ago and ready(pod) for pod in pods)


def ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
