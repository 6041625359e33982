"""`pods/log`: what simulated containers print."""

import asyncio
import datetime

import pytest

from kube_base.access.errors import ApiError
from kube_base.resources import PODS
from kube_sandbox.apiserver.verbs.logs import LOG
from support.cluster import SPACE, Cluster

PATH = f"/api/v1/namespaces/{SPACE}/pods/web/log"


async def create(cluster: Cluster, *images: str, text: str = "", phase: str = "Running") -> None:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    metadata = {"name": "web", "annotations": {LOG: text}}
    await cluster.client.create(PODS, {"metadata": metadata, "spec": {"containers": containers}}, SPACE)
    await cluster.until(
        PODS, lambda pods: pods[0]["status"]["phase"] == phase and pods[0]["status"].get("containerStatuses")
    )


async def log(cluster: Cluster, **query: str) -> str:
    return (await cluster.client.request("GET", PATH, query=query, accept="*/*")).decode()


async def refusal(cluster: Cluster, **query: str) -> str:
    with pytest.raises(ApiError) as raised:
        await log(cluster, **query)
    assert raised.value.code == 400
    return str(raised.value)


async def test_container_prints_the_lines_of_the_annotation_at_their_times(cluster: Cluster) -> None:
    await create(cluster, "busybox", text="started\n1500ms panic: nil map\n1000s later")
    assert await log(cluster) == "started\n"
    await asyncio.sleep(1.5)  # the start of a container is known in whole seconds: the line is there at the latest
    assert await log(cluster, container="c0") == "started\npanic: nil map\n"
    assert await log(cluster, tailLines="1") == "panic: nil map\n"
    assert await log(cluster, limitBytes="5") == "start"
    (first, _) = (await log(cluster, timestamps="true")).splitlines()
    stamp, _, text = first.partition(" ")
    assert text == "started"
    after = datetime.datetime.fromisoformat(stamp) + datetime.timedelta(seconds=1)
    assert await log(cluster, sinceTime=after.isoformat()) == "panic: nil map\n"
    assert await log(cluster, sinceSeconds="1000") == "started\npanic: nil map\n"


async def test_restarted_container_has_the_log_of_its_run_before(cluster: Cluster) -> None:
    await create(cluster, "busybox:exits-once-after-500ms", text="started\n100s later")
    assert "previous terminated container" in await refusal(cluster, previous="true")
    await cluster.until(PODS, lambda pods: pods[0]["status"]["containerStatuses"][0]["restartCount"] == 1)
    assert await log(cluster, previous="true") == "started\n"


async def test_wrong_requests_for_logs_are_refused(cluster: Cluster) -> None:
    await create(cluster, "busybox", "nosuch", text="started", phase="Pending")
    await cluster.until(PODS, lambda pods: "running" in pods[0]["status"]["containerStatuses"][0]["state"])
    assert "choose one of: [c0 c1]" in await refusal(cluster)
    assert "container c2 is not valid for pod web" in await refusal(cluster, container="c2")
    assert "is waiting to start" in await refusal(cluster, container="c1")
    assert "tailLines is not a number" in await refusal(cluster, container="c0", tailLines="-1")
    assert "sinceTime is not a time" in await refusal(cluster, container="c0", sinceTime="noon")
