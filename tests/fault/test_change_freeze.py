"""A ValidatingAdmissionPolicy of somebody else refuses changes of workloads for some time."""

from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from tests.fault.reconciler_cluster import running_cluster
from tests.fault.reconciler_stories import answered, good_release, is_paused, paused, policy_with_pause, suspended

_MESSAGE = "ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: no change in the freeze"
_TRIES = 5  # a failure that only a change of the object can heal is tried once a minute


class Freeze:
    """Refuses patches of the spec, as the API server does for a policy without a `reason`: the cause names no field."""

    def __init__(self) -> None:
        self.over = False
        self.refused = 0

    async def is_tried(self) -> bool:
        return self.refused >= _TRIES

    async def __call__(self, request: web.Request, go_on: Callable[[], web.StreamResponse]) -> web.StreamResponse:
        if self.over or request.method != "PATCH" or "deployments" not in request.path:
            return await go_on()
        if b'"/spec' not in await request.read():
            return await go_on()
        self.refused += 1
        details = {"name": "sleep", "group": "apps", "kind": "deployments", "causes": [{"message": _MESSAGE}]}
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": _MESSAGE, "reason": "Invalid"}
        return web.json_response({**status, "code": 422, "details": details}, status=422)


async def test_pause_that_a_policy_refuses_to_end_ends_after_the_freeze(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            await policy_with_pause(cluster)
            await good_release(cluster)
            await paused(cluster)
            freeze = Freeze()
            cluster.set_fault(freeze)
            await answered(cluster, "Resume")

            await cluster.until(freeze.is_tried, "the end of the pause to be tried again and again")
            assert await is_paused(cluster, True)
            freeze.over = True
            await cluster.until(lambda: is_paused(cluster, False), "the rollout to continue")


async def test_pause_that_a_policy_refuses_begins_after_the_freeze(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler():
            await policy_with_pause(cluster)
            await good_release(cluster)
            freeze = Freeze()
            cluster.set_fault(freeze)
            await suspended(cluster)

            await cluster.until(freeze.is_tried, "the pause to be tried again and again")
            freeze.over = True
            await cluster.until(lambda: is_paused(cluster, True), "the rollout to be paused")
