"""The two walks of docs/reference/walks.md: one review, and one pod event. `python -m tests.structure.walks` writes the
page."""

import asyncio
import copy
import tempfile
from pathlib import Path
from types import FrameType

from altershield.api import json_patch, labels, released_by
from altershield.api.resources import CHANGE_PODS
from altershield.process.listener import Listener
from docs.pages import modules
from kube_base.access import watch_stream
from kube_base.resources import PODS
from reconciler.releases.subject import RELEASES
from tests.fault.reconciler_cluster import running_cluster, version
from tests.structure.trace import ROOT, Walk, is_start, traced
from tests.unit.gatekeeper.reviews import MUTATING_PATH, encode, released, review
from tests.unit.gatekeeper.serving import JSON, post, serving, session

_QUIET_SECONDS = 1.0


async def of_a_review(directory: Path) -> Walk:
    """A developer applies another image to a Deployment that AlterShield has verified."""
    stored = released("busybox")
    applied = copy.deepcopy(stored)
    applied["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    released_by._time.cache_clear()  # which calls run must not depend on what ran before
    json_patch.label_path.cache_clear()
    async with serving(directory) as served, session() as client:
        with traced(lambda frame: frame.f_code is Listener._answer.__code__ and is_start(frame)) as walks:
            status, _ = await post(client, served.url(MUTATING_PATH), encode(review(applied, stored)), JSON)
    assert status == 200
    (walk,) = walks
    return walk


async def of_a_pod_event(directory: Path) -> Walk:
    """A pod of a verified release becomes ready, so that it is verified."""
    async with running_cluster(directory) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler(observe_seconds=0) as manager:
            await cluster.release(version("v1"))
            await cluster.until_states(v1="Success")
            await cluster.stop_controllers()  # no other pod changes
            pod, *_ = await cluster.all(PODS)
            status = pod.pop("status")
            await cluster.admin.delete(PODS, pod["metadata"]["name"], cluster.namespace)
            pod["metadata"]["name"] = f"{pod['metadata']['name']}-again"
            for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                pod["metadata"].pop(name, None)
            pod["metadata"]["labels"].pop(labels.OPERATE_FINISHED, None)
            await cluster.admin.create(PODS, pod, cluster.namespace)
            await asyncio.sleep(_QUIET_SECONDS)
            before = len(await cluster.all(CHANGE_PODS))
            with traced(_receives_pods, manager.queues[RELEASES.name]) as walks:
                await cluster.set_status(PODS, pod["metadata"]["name"], status)

                async def verified() -> bool:
                    return len(await cluster.all(CHANGE_PODS)) > before and walks[0].ended

                await cluster.until(verified, "the pod to be verified")
    return walks[0]


def _receives_pods(frame: FrameType) -> bool:
    """Whether the watch of the pods goes on with new bytes."""
    if frame.f_code is not watch_stream._lines.__code__ or is_start(frame):
        return False
    reflector = frame.f_locals["on_data"].__self__
    return bool(reflector._cache.name == PODS.plural)


WALKS = {"One review": of_a_review, "One pod event": of_a_pod_event}
"""By their heading."""

PAGE = ROOT / "docs" / "reference" / "walks.md"


async def page(directory: Path) -> str:
    """The text of the page, from walks that are made now."""
    found = {}
    for heading, walk in WALKS.items():
        folder = directory / heading.replace(" ", "-")
        folder.mkdir()
        made = await walk(folder)
        found[heading] = (made.files(), made.turns())
    return modules.walks(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        PAGE.write_text(asyncio.run(page(Path(temporary))), encoding="utf-8")
