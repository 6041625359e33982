"""docs/architecture.md lists the files of one review and of one pod event in the order in which they run."""

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, PODS
from tests.docs.pages import ROOT
from tests.fault.reconciler_cluster import running_cluster, version
from tests.unit.gatekeeper.reviews import MUTATING_PATH, deployment, encode, review
from tests.unit.gatekeeper.serving import serving, session

_STEP = re.compile(r"^\d+\. `([\w/]+\.py)`", re.MULTILINE)
_PACKAGES = ("altershield", "gatekeeper", "reconciler")


def walk(heading: str) -> list[str]:
    """The files in the numbered list of a section, in order."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return _STEP.findall(section)


@contextlib.contextmanager
def files_called(first: str) -> Iterator[list[str]]:
    """The files of the product in which a function runs, in the order of the first calls. The list begins with the
    first call in `first`: other tasks may run before it, such as a reconcile that an earlier event has queued."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in _PACKAGES:
                file = path.relative_to(ROOT).as_posix()
                if found or file == first:
                    found[file] = None

    result: list[str] = []
    before: Callable[..., Any] | None = sys.getprofile()
    sys.setprofile(note)
    try:
        yield result
    finally:
        sys.setprofile(before)
        result += found


def in_order(steps: list[str], called: list[str]) -> None:
    assert len(steps) == len(set(steps)), "the page lists each file once"
    assert [step for step in called if step in steps] == steps


async def test_files_of_a_review_run_in_the_order_of_the_page(tmp_path: Path) -> None:
    steps = walk("One review")
    async with serving(tmp_path) as served, session() as client:
        headers = {"Content-Type": "application/json"}
        with files_called(steps[0]) as called:
            async with client.post(
                served.url(MUTATING_PATH), data=encode(review(deployment())), headers=headers
            ) as answer:
                assert answer.status == 200
                await answer.read()
    in_order(steps, called)


async def test_files_of_a_pod_event_run_in_the_order_of_the_page(tmp_path: Path) -> None:
    steps = walk("One pod event")
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        async with cluster.reconciler() as manager:
            await cluster.release(version("v1"))
            await cluster.until_states(v1="Success")

            async def at_rest() -> bool:
                stored, *_ = (await cluster.admin.list(CHANGE_WORKLOADS, cluster.namespace, as_=dict)).items
                kept = manager.caches.releases.get(cluster.namespace, stored["metadata"]["name"])
                version = stored["metadata"]["resourceVersion"]
                return kept is not None and kept.metadata.resource_version == version

            await cluster.until(at_rest, "the reconciler to keep what it has written")
            before = len((await cluster.admin.list(CHANGE_PODS, cluster.namespace, as_=dict)).items)
            pod, *_ = (await cluster.admin.list(PODS, cluster.namespace, as_=dict)).items
            with files_called(steps[0]) as called:
                await cluster.admin.delete(PODS, pod["metadata"]["name"], cluster.namespace)

                async def verified_again() -> bool:
                    return len((await cluster.admin.list(CHANGE_PODS, cluster.namespace, as_=dict)).items) > before

                await cluster.until(verified_again, "the new pod to be verified")
    in_order(steps, called)
