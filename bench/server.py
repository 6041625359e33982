"""Measures releases that an AlterShield server checks.

    python -m bench.server

The sandbox, its simulated nodes and a simulated AlterShield server are one process. The reconciler runs in this
process. First, each Deployment is released once. The server takes 0.2 to 5 s for each answer and for each check, and
fails 2 % of the checks. Then as many checks as there are Deployments are open at the same time, and none ends.
"""

import asyncio
import contextlib
import math
import re
import statistics
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from altershield.api import labels, names
from altershield.api.kinds import WorkloadState
from altershield.api.resources import CRDS, DEPLOYMENTS, NAMESPACES
from altershield.install import crds
from altershield.kube.client import Client
from altershield.process import options
from altershield.process.children import free_ports
from altershield.releases import state
from altershield.workloads.workload import Workload
from bench.reconciler import NAMESPACE, make, namespace, sandbox_with
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.server.client import ServerClient
from reconciler.server.settings import Settings

MAX_WRITES = 7.0
MAX_SECONDS = 1.0
MAX_SHARE = 0.05
_LATENCY = (0.2, 5.0)
_FAILS = 0.02
_PATIENCE = 1800.0


@dataclass
class Server:
    """The simulated AlterShield server."""

    url: str
    http: aiohttp.ClientSession
    failed: dict[str, float] = field(default_factory=dict)
    """When the server sent the first callback with a failure, Unix seconds, by name of the workload."""

    async def script(self, **script: Any) -> None:
        async with self.http.put(f"{self.url}/sandbox/script", json=script) as answer:
            answer.raise_for_status()

    async def follow(self) -> None:
        """Collect the callbacks until cancelled: the server keeps only the last ones."""
        while True:
            async with self.http.get(f"{self.url}/sandbox/callbacks") as answer:
                for each in (await answer.json(content_type=None))["items"]:
                    if each["verdict"] == "fail":
                        self.failed.setdefault(each["order"].rpartition("/")[2], each["time"])
            await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def setting(pre_timeout: int = 120) -> AsyncIterator[tuple[Manager, Client, Server]]:
    """A sandbox with an AlterShield server, and a reconciler that uses it."""
    (port,) = free_ports(1)
    callback = f"http://127.0.0.1:{port}/openapi/altershield/callback"
    async with contextlib.AsyncExitStack() as stack:
        arguments = ("--altershield-server", "--server-callback", callback)
        kubeconfig, said = await stack.enter_async_context(sandbox_with(*arguments))
        (url,) = re.findall(r"--server-url (\S+)", said)
        client = await stack.enter_async_context(await Client.connect(str(kubeconfig)))
        await client.create(NAMESPACES, namespace(names.SYSTEM_NAMESPACE))
        await client.create(NAMESPACES, namespace(NAMESPACE, **{labels.GOVERNED: labels.GOVERNED_VALUE}))
        for crd in crds.crds():
            await client.create(CRDS, crd)
        token = Path(f"{kubeconfig}.server-token")
        server_client = await stack.enter_async_context(ServerClient(Settings(url=url, token_file=token)))
        manager = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="bench",
                start_timeout=120,
                observe_seconds=1,
                batch_wait=options.BATCH_WAIT,
                pre_timeout=pre_timeout,
                post_timeout=pre_timeout,
                callback_port=port,
                callback_host="127.0.0.1",
                lease_duration=60,
                metrics_port=0,
            ),
            server=server_client,
        )
        server = Server(url, await stack.enter_async_context(aiohttp.ClientSession()))
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        for informer in manager.caches.required:
            await informer.wait_synced()
        yield manager, client, server
        stop.set()
        await running


async def releases(deployments: int, replicas: int) -> tuple[dict[str, float], set[str], set[str], float]:
    """Release all Deployments. Returns the times from the callback to the label by name, the names of those that the
    server failed and of those that were suspended, and the writes per pod."""
    async with setting() as (manager, client, server):
        suspended: dict[str, float] = {}

        def labelled(_: Workload | None, new: Workload | None) -> None:
            if new is not None and new.suspended:
                suspended.setdefault(new.metadata.name, time.time())

        manager.caches.workloads[DEPLOYMENTS.kind].add_handler(labelled)
        check = {"fail_share": _FAILS, "delay": _LATENCY}
        await server.script(seed=1, latency=_LATENCY, pre=check, post=check)
        following = asyncio.create_task(server.follow())

        def ended() -> bool:
            states = [state(each) for each in manager.caches.releases.all()]
            over = (WorkloadState.SUCCESS, WorkloadState.SUSPEND)
            return len(states) == deployments and all(each in over for each in states)

        await make(client, deployments, replicas)
        await until(ended)
        await asyncio.sleep(10)  # until the orders are closed
        following.cancel()
        writes = sum(
            sample.value
            for family in manager.metrics.writes.collect()
            for sample in family.samples
            if sample.name.endswith("_total") and sample.labels["kind"] != "OpsConfigInfo"
        )
        failed = server.failed
    times = {name: suspended[name] - failed[name] for name in suspended if name in failed}
    return times, set(failed), set(suspended), writes / (deployments * replicas)


async def open_checks(deployments: int, seconds: float) -> float:
    """The share of a core that as many open checks take."""
    async with setting(pre_timeout=3600) as (manager, client, server):
        await server.script(pre={"verdict": "never"})
        await make(client, deployments, 1)
        await until(lambda: sum(bool(each.node) for each in manager.caches.batches.all()) >= deployments)
        await asyncio.sleep(30)  # polls come at their longest intervals
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        return (time.process_time() - cpu) / (time.monotonic() - began)


async def until(met: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > _PATIENCE:
            raise TimeoutError("the releases do not end")
        await asyncio.sleep(0.2)


def main(
    deployments: Annotated[int, typer.Option(min=1)] = 1000,
    replicas: Annotated[int, typer.Option(min=1)] = 1,
    seconds: Annotated[float, typer.Option(min=1)] = 60.0,
) -> None:
    """Measure releases with an AlterShield server. Exits with 1 if a bound is exceeded or a verdict is wrong."""
    times, failed, suspended, writes = uvloop.run(releases(deployments, replicas))
    share = uvloop.run(open_checks(deployments, seconds))
    ordered = sorted(times.values()) or [math.nan]
    late = ordered[int(len(ordered) * 0.99)]
    table = Table(
        "", "", title=f"{deployments} Deployments with {replicas} pods each, checked by an AlterShield server"
    )
    table.add_row("failed by the server", str(len(failed)))
    table.add_row("suspended", str(len(suspended)))
    table.add_row("suspended wrongly, or not", str(len(failed ^ suspended)))
    table.add_row("writes per verified pod", f"{writes:.2f} (at most {MAX_WRITES:g})")
    table.add_row("callback to label, median", f"{statistics.median(ordered):.3f} s")
    table.add_row("callback to label, 99 %", f"{late:.3f} s (at most {MAX_SECONDS:g})")
    table.add_row(f"{deployments} open checks", f"{share:.1%} of a core (at most {MAX_SHARE:.0%})")
    Console().print(table)
    if failed != suspended or writes > MAX_WRITES or late > MAX_SECONDS or share > MAX_SHARE:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
