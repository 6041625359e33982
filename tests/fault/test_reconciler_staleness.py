"""A reconciler with outdated caches, as after an outage, does not end a release because of old data."""

import asyncio
import time
from pathlib import Path

from aiohttp import web

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS
from altershield.workloads.pods import Pod
from kube_base.resources import PODS
from kube_base.times import rfc3339, unix
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


async def test_pod_that_crashed_during_a_watch_outage_does_not_count_as_passed(tmp_path: Path) -> None:
    blindness = Blindness()
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("ahead")
        cluster.set_fault(blindness)
        async with cluster.reconciler(start_timeout=60.0, observe_seconds=3.0) as manager:
            await good_release(cluster)
            await cluster.release(version("v2"))

            def known() -> list[Pod]:
                return sorted(manager.caches.pods.all(), key=lambda pod: pod.metadata.name)

            async def all_ready(count: int = 2) -> bool:
                pods = known()
                return len(pods) == 2 and sum(pod.ready and pod.version == version("v2") for pod in pods) == count

            await cluster.until(all_ready, "the pods of v2 to be ready")
            await cluster.stop_controllers()
            first, second = (pod.metadata.name for pod in known())
            await set_ready(cluster, second, "False")
            await cluster.until(lambda: all_ready(1), "the reconciler to see a pod that is not ready")

            async def first_passed() -> bool:
                return any(
                    first in {pod["pod"] for pod in each["spec"]["podInfos"]}
                    for each in await cluster.all(CHANGE_PODS)
                    if each.get("status", {}).get("status") == "ExecuteDone"
                )

            await cluster.until(first_passed, "the other pod to pass")
            await set_ready(cluster, second, "True")
            await cluster.until(all_ready, "the reconciler to see both pods ready")
            blindness.set.set()
            await set_ready(cluster, first, "False")

            async def second_up() -> bool:
                pod = await cluster.get(PODS, second)
                return pod is not None and labels.OPERATE_FINISHED in pod["metadata"]["labels"]

            await cluster.until(second_up, "the second pod to come up")
            await asyncio.sleep(1)
            assert (await cluster.states())[version("v2")] == "Running", "the reconciler must read the pods itself"
            await set_ready(cluster, first, "True")
            blindness.set.clear()
            await cluster.until_states(v2="Success")


async def set_ready(cluster: Cluster, name: str, value: str) -> None:
    pod = await cluster.get(PODS, name)
    assert pod is not None
    conditions = [
        {**each, "status": value, "lastTransitionTime": rfc3339(time.time())} if each["type"] == "Ready" else each
        for each in pod["status"]["conditions"]
    ]
    await cluster.set_status(PODS, name, {"conditions": conditions})


async def all_overdue_and_up(cluster: Cluster) -> bool:
    pods = [pod for pod in await cluster.all(PODS) if pod["metadata"]["labels"][labels.VERSION] == version("v2")]
    long_ago = time.time() - START_TIMEOUT - 2
    return len(pods) == 2 and all(unix(pod["metadata"]["creationTimestamp"]) < long_ago and ready(pod) for pod in pods)


def ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
