"""Measures API writes per verified pod, and the time from the moment when a pod is up until its verdict.

    python -m bench.reconciler

The sandbox with its simulated nodes is one process. The reconciler runs in this process, which also creates the
Deployments and reads the reconciler's caches. The Deployments have their version labels from the start, because no
gatekeeper runs.
"""

import asyncio
import contextlib
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.api import labels, names
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.workloads.adapter import template_of
from altershield.workloads.pods import Pod
from altershield.workloads.workload import fingerprint_of
from command.install import crds
from kube_base.access.client import Client
from kube_base.resources import CRDS, DEPLOYMENTS, EVENTS, NAMESPACES
from reconciler import thresholds
from reconciler.cluster.batch import Batch
from reconciler.cluster.release import Release
from reconciler.manager import COMPONENT, Manager
from reconciler.options import Options

RESULTS = Path(__file__).parent / "results" / "reconciler.json"
NAMESPACE = "bench"
START_TIMEOUT = 120.0
"""Seconds. A release is settled this long after its success; that is the last write about it."""
MAX_OF_A_POD, MAX_OF_A_RELEASE = 4.0, 6.0
_OF_PODS = {"Pod", "ChangePod"}
_PROBE = "the-name-of-no-app"
_MAKERS = 20  # Deployments that are created at the same time


@dataclass(frozen=True)
class Result:
    """Times are in seconds."""

    machine: str
    deployments: int
    pods: int
    seconds: float
    """From the creation of the first Deployment until the last release was settled."""
    writes: dict[str, int]
    writes_of_a_pod: float
    """To objects of its own: the pod and its ChangePod."""
    writes_of_a_release: float
    """To other objects."""
    up_to_verdict_median: float
    up_to_verdict_p99: float


class Watcher:
    """Records when pods become ready and when they get their verdicts."""

    def __init__(self, manager: Manager, deployments: int) -> None:
        self.ready: dict[str, float] = {}
        self.judged: dict[str, float] = {}
        self.finished = asyncio.Event()
        self._settled: set[str] = set()
        self._deployments = deployments
        manager.caches.pods.add_handler(self._pod)
        manager.caches.batches.add_handler(self._batch)
        manager.caches.releases.add_handler(self._release)

    def _pod(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None and new.ready:
            self.ready.setdefault(new.metadata.name, time.monotonic())

    def _batch(self, _: Batch | None, new: Batch | None) -> None:
        if new is not None and new.done:
            for member in new.members:
                self.judged.setdefault(member.pod, time.monotonic())

    def _release(self, _: Release | None, new: Release | None) -> None:
        settled = find_condition(new.status.conditions, ConditionType.SETTLED) if new is not None else None
        if new is not None and settled is not None and settled.is_true:
            self._settled.add(new.metadata.name)
            if len(self._settled) == self._deployments:
                self.finished.set()


async def measure(deployments: int, replicas: int) -> Result:
    async with sandbox() as kubeconfig, await Client.connect(str(kubeconfig)) as client:
        await client.create(NAMESPACES, namespace(names.SYSTEM_NAMESPACE))
        await client.create(NAMESPACES, namespace(NAMESPACE, **{labels.GOVERNED: labels.GOVERNED_VALUE}))
        for crd in crds.crds():
            await client.create(CRDS, crd)
        manager = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="bench",
                start_timeout=START_TIMEOUT,
                observe_seconds=thresholds.OBSERVE_SECONDS,
                batch_wait=thresholds.BATCH_WAIT,
                pre_timeout=thresholds.PRE_TIMEOUT,
                post_timeout=thresholds.POST_TIMEOUT,
                lease_duration=60,
                metrics_port=0,
            ),
        )
        watcher = Watcher(manager, deployments)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        for informer in manager.caches.required:
            await informer.wait_synced()
        began = time.monotonic()
        making = asyncio.create_task(make(client, deployments, replicas))
        finished = asyncio.create_task(watcher.finished.wait())
        await asyncio.wait((running, finished), return_when=asyncio.FIRST_COMPLETED)
        seconds = time.monotonic() - began
        await making
        events: list[dict[str, Any]] = (await client.list(EVENTS, NAMESPACE)).items
        stop.set()
        await running
    writes = {
        f"{sample.labels['verb']} {sample.labels['kind']}": int(sample.value)
        for family in manager.metrics.writes.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.value and sample.labels["kind"] != "OpsConfigInfo"
    }
    writes["Event"] = sum(event.get("reportingComponent") == COMPONENT for event in events)
    of_pods = sum(count for name, count in writes.items() if name.split()[-1] in _OF_PODS)
    waits = sorted(watcher.judged[pod] - ready - thresholds.OBSERVE_SECONDS for pod, ready in watcher.ready.items())
    return Result(
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        deployments=deployments,
        pods=len(waits),
        seconds=round(seconds, 1),
        writes=writes,
        writes_of_a_pod=round(of_pods / len(waits), 2),
        writes_of_a_release=round((sum(writes.values()) - of_pods) / deployments, 2),
        up_to_verdict_median=round(statistics.median(waits), 3),
        up_to_verdict_p99=round(waits[int(len(waits) * 0.99)], 3),
    )


async def make(client: Client, count: int, replicas: int, rate: float = math.inf) -> None:
    """Create the Deployments, a few at a time and at most `rate` in a second, with the version that the gatekeeper
    would set: the fingerprint of the template as the API server returns it."""
    shown: dict[str, Any] = await client.create(DEPLOYMENTS, deployment(_PROBE, 0), "default")
    template = json.dumps(shown["spec"]["template"])
    waiting = iter(range(count))

    began = time.monotonic()

    async def maker() -> None:
        for number in waiting:
            await asyncio.sleep(began + number / rate - time.monotonic())
            name = f"app-{number}"
            version = fingerprint_of(template_of(json.loads(template.replace(_PROBE, name))))
            await client.create(DEPLOYMENTS, deployment(name, replicas, version), NAMESPACE)

    async with asyncio.TaskGroup() as group:
        for _ in range(_MAKERS):
            group.create_task(maker())


def namespace(name: str, **own: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}}


def deployment(name: str, replicas: int, version: str = "") -> dict[str, Any]:
    pod_labels = {"app": name} | ({labels.VERSION: version} if version else {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": pod_labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {"containers": [{"name": "app", "image": "busybox"}]},
            },
        },
    }


@contextlib.asynccontextmanager
async def sandbox() -> AsyncIterator[Path]:
    """Run a sandbox in another process. Yields its kubeconfig."""
    async with sandbox_with() as (kubeconfig, _):
        yield kubeconfig


@contextlib.asynccontextmanager
async def sandbox_with(*arguments: str) -> AsyncIterator[tuple[Path, str]]:
    """Run a sandbox with these arguments in another process. Yields its kubeconfig and its output."""
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory, "kubeconfig")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "command", "sandbox", "--output", str(kubeconfig), *arguments),
            stderr=asyncio.subprocess.PIPE,
        )
        said, text = process.stderr, b""
        try:
            async with asyncio.timeout(60):
                while said is not None and b"Serving" not in text:
                    text += await said.readline()
            yield kubeconfig, text.decode()
        finally:
            process.terminate()
            await process.wait()


def main(
    deployments: Annotated[int, typer.Option(min=1)] = 1000,
    replicas: Annotated[int, typer.Option(min=1)] = 5,
) -> None:
    """Verify many releases at the same time. Exits with 1 if a pod causes more than four writes, or a release
    more than six."""
    result = uvloop.run(measure(deployments, replicas))
    table = Table("", "", title=f"{deployments} Deployments of {replicas} pods, on {result.machine}")
    for name, count in result.writes.items():
        table.add_row(name, str(count))
    table.add_row("writes of a pod", f"{result.writes_of_a_pod:.2f} (at most {MAX_OF_A_POD:g})")
    table.add_row("writes of a release", f"{result.writes_of_a_release:.2f} (at most {MAX_OF_A_RELEASE:g})")
    table.add_row("up to verdict, median", f"{result.up_to_verdict_median:.3f} s")
    table.add_row("up to verdict, 99 %", f"{result.up_to_verdict_p99:.3f} s")
    table.add_row("total time", f"{result.seconds:.1f} s")
    Console().print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(asdict(result), indent=2))
    if result.writes_of_a_pod > MAX_OF_A_POD or result.writes_of_a_release > MAX_OF_A_RELEASE:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
