"""Measures releases that an AlterShield server checks.

    python -m bench.server

The sandbox, its simulated nodes and a simulated AlterShield server are one process. The reconciler runs in this
process. There are three runs:

- Many Deployments of one pod are released at a steady rate. The server takes 0.2 to 5 s for each answer and for each
  check, and fails 2 % of the checks. Are exactly the failed releases suspended, and how long after the callback?
- Fewer Deployments of five pods are released. The server takes at most a second. How many writes does a pod cause?
- As many checks as in the first run are open at the same time, and none ends. How much CPU do the polls take?
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
from altershield.api.change_workload import WorkloadState
from altershield.releases import state
from altershield.workloads.workload import Workload
from bench.reconciler import NAMESPACE, make, namespace, sandbox_with
from command.install import crds
from kube_base.access.client import Client
from kube_base.processes import free_ports
from kube_base.resources import CRDS, DEPLOYMENTS, NAMESPACES
from reconciler import thresholds
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.server.server_client import ServerClient
from reconciler.server.server_settings import Settings

MAX_WRITES = 7.4
MAX_SECONDS = 1.0
MAX_SHARE = 0.05
_SLOW, _QUICK = (0.2, 5.0), (0.1, 1.0)
_FAILS = 0.02
_REPLICAS = 5  # of the run that counts writes
_LONGEST_POLLS = 250.0
"""Seconds after which polls come at their longest intervals."""
_TIMEOUT_SECONDS = 1800.0


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
async def environment(pre_timeout: int = 120) -> AsyncIterator[tuple[Manager, Client, Server]]:
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
                batch_wait=thresholds.BATCH_WAIT,
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


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run."""

    failed: set[str]
    """Names of the Deployments that the server failed."""
    suspended: set[str]
    seconds: list[float]
    """Seconds from the first callback with a failure to the label, in order."""
    writes_per_pod: float


async def releases(deployments: int, replicas: int, rate: float, latency: tuple[float, float], fails: float) -> Outcome:
    """Release Deployments, `rate` in a second."""
    async with environment() as (manager, client, server):
        suspended: dict[str, float] = {}

        def labelled(_: Workload | None, new: Workload | None) -> None:
            if new is not None and new.suspended:
                suspended.setdefault(new.metadata.name, time.time())

        manager.caches.workloads[DEPLOYMENTS.group_kind].add_handler(labelled)
        check = {"fail_share": fails, "delay": latency}
        await server.script(seed=1, latency=latency, pre=check, post=check)
        following = asyncio.create_task(server.follow())

        def ended() -> bool:
            states = [state(each) for each in manager.caches.releases.all()]
            over = (WorkloadState.SUCCESS, WorkloadState.SUSPEND)
            return len(states) == deployments and all(each in over for each in states)

        await make(client, deployments, replicas, rate)
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
    seconds = sorted(suspended[name] - failed[name] for name in suspended if name in failed)
    return Outcome(set(failed), set(suspended), seconds, writes / (deployments * replicas))


async def open_checks(deployments: int, seconds: float) -> float:
    """The share of a core that the polls of so many open checks take."""
    async with environment(pre_timeout=3600) as (manager, client, server):
        await server.script(pre={"verdict": "never"})
        await make(client, deployments, 1)
        await until(lambda: sum(bool(each.node) for each in manager.caches.batches.all()) >= deployments)
        await asyncio.sleep(_LONGEST_POLLS)
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        return (time.process_time() - cpu) / (time.monotonic() - began)


async def until(met: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > _TIMEOUT_SECONDS:
            raise TimeoutError("the releases do not end")
        await asyncio.sleep(0.2)


def main(
    deployments: Annotated[int, typer.Option(min=1)] = 1000,
    rate: Annotated[float, typer.Option(min=0.1, help="Releases in a second.")] = 5.0,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds in which open checks are polled.")] = 60.0,
) -> None:
    """Measure releases with an AlterShield server. Exits with 1 if a bound is exceeded or a verdict is wrong."""
    slow = uvloop.run(releases(deployments, 1, rate, _SLOW, _FAILS))
    quick = uvloop.run(releases(max(1, deployments // 10), _REPLICAS, rate, _QUICK, 0.0))
    share = uvloop.run(open_checks(deployments, seconds))
    times = slow.seconds or [math.nan]
    late = times[int(len(times) * 0.99)]
    table = Table("", "", title=f"{deployments} Deployments, {rate:g} in a second, checked by an AlterShield server")
    table.add_row("failed by the server", str(len(slow.failed)))
    table.add_row("suspended", str(len(slow.suspended)))
    table.add_row("suspended wrongly, or not", str(len(slow.failed ^ slow.suspended)))
    table.add_row("callback to label, median", f"{statistics.median(times):.3f} s")
    table.add_row("callback to label, 99 %", f"{late:.3f} s (at most {MAX_SECONDS:g})")
    table.add_row(f"writes per pod, {_REPLICAS} pods each", f"{quick.writes_per_pod:.2f} (at most {MAX_WRITES:g})")
    table.add_row("writes per pod, one pod each, slow server", f"{slow.writes_per_pod:.2f}")
    table.add_row(f"{deployments} open checks", f"{share:.1%} of a core (at most {MAX_SHARE:.0%})")
    Console().print(table)
    wrong = slow.failed != slow.suspended or quick.suspended
    if wrong or quick.writes_per_pod > MAX_WRITES or late > MAX_SECONDS or share > MAX_SHARE:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
