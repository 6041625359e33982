"""Are releases that an AlterShield server checks suspended rightly and soon, and what do the checks cost?

Measured: the sandbox, its simulated nodes and a simulated AlterShield server are one process. The reconciler runs in
this process. There are three runs:

- Many Deployments of one pod are released at a steady rate. The server takes 0.2 to 5 s for each answer and for each
  check, and fails 2 % of the checks. Are exactly the failed releases suspended, and how long after the callback?
- Fewer Deployments of five pods are released. The server takes at most a second. How many writes does a pod cause?
- As many checks as in the first run are open at the same time, and none ends. How much CPU do the polls take?

How to read it: a release that is suspended wrongly, or not, is a bug. The time to the label grows while the sandbox
keeps the cores busy.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer

from altershield.api.change_workload import WorkloadState
from altershield.releases import state
from altershield.workloads.workload import Workload
from bench.harness.answer import Answer, exceeded, fields, quantiles
from bench.harness.sandbox import NAMESPACE, govern, reconciling, sandbox, writes
from bench.harness.servers import LOOPBACK, port
from bench.harness.waiting import until
from bench.questions.reconciler import create_all
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS
from reconciler.manager import Manager
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
async def _environment(check_timeout: int = 120) -> AsyncIterator[tuple[Manager, Client, Server]]:
    """A sandbox with an AlterShield server, and a reconciler that uses it."""
    own = port()
    callback = f"http://{LOOPBACK}:{own}/openapi/altershield/callback"
    async with (
        sandbox("--altershield-server", "--server-callback", callback) as (kubeconfig, said),
        await Client.connect(str(kubeconfig)) as client,
        aiohttp.ClientSession() as http,
    ):
        (url,) = re.findall(r"--server-url (\S+)", said)
        await govern(client, NAMESPACE)
        async with (
            ServerClient(Settings(url=url, token_file=Path(f"{kubeconfig}.server-token"))) as server_client,
            reconciling(
                client,
                server_client,
                start_timeout=120,
                observe_seconds=1,
                pre_timeout=check_timeout,
                post_timeout=check_timeout,
                callback_port=own,
                callback_host=LOOPBACK,
            ) as manager,
        ):
            yield manager, client, Server(url, http)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run."""

    failed: set[str]
    """Names of the Deployments that the server failed."""
    suspended: set[str]
    seconds: tuple[int, float, float]
    """From the first callback with a failure to the label: number, median and 99th percentile."""
    writes_per_pod: float


async def _releases(
    deployments: int, replicas: int, rate: float, latency: tuple[float, float], fails: float
) -> Outcome:
    """Release Deployments, `rate` in a second."""
    async with _environment() as (manager, client, server):
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

        await create_all(client, deployments, replicas, rate)
        await until(ended, "the releases to end", _TIMEOUT_SECONDS)
        await asyncio.sleep(10)  # until the orders are closed
        following.cancel()
        written, failed = writes(manager).total(), server.failed
    seconds = quantiles(suspended[name] - failed[name] for name in suspended if name in failed)
    return Outcome(set(failed), set(suspended), seconds, round(written / (deployments * replicas), 2))


async def _open_checks(deployments: int, settle: float, seconds: float) -> float:
    """The share of a core that the polls of so many open checks take."""
    async with _environment(check_timeout=3600) as (manager, client, server):
        await server.script(pre={"verdict": "never"})
        await create_all(client, deployments, 1)

        def are_open() -> bool:
            return sum(bool(each.node) for each in manager.caches.batches.all()) >= deployments

        await until(are_open, "the checks to be open", _TIMEOUT_SECONDS)
        await asyncio.sleep(settle)
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        return round((time.process_time() - cpu) / (time.monotonic() - began), 4)


async def ask(
    deployments: Annotated[int, typer.Option(min=1)] = 1000,
    rate: Annotated[float, typer.Option(min=0.1, help="Releases in a second.")] = 5.0,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds in which open checks are polled.")] = 60.0,
    settle: Annotated[
        float, typer.Option(min=0, help="Seconds until then. Polls come at their longest intervals after 250 s.")
    ] = _LONGEST_POLLS,
) -> Answer:
    slow = await _releases(deployments, 1, rate, _SLOW, _FAILS)
    quick = await _releases(max(1, deployments // 10), _REPLICAS, rate, _QUICK, 0.0)
    share = await _open_checks(deployments, settle, seconds)
    _, median, late = slow.seconds
    differ = slow.failed ^ slow.suspended
    rows = {
        "failed by the server": len(slow.failed),
        "suspended": len(slow.suspended),
        "suspended wrongly, or not": len(differ),
        "callback to label, median": f"{median:.3f} s",
        "callback to label, 99 %": f"{late:.3f} s (at most {MAX_SECONDS:g})",
        f"writes per pod, {_REPLICAS} pods each": f"{quick.writes_per_pod:.2f} (at most {MAX_WRITES:g})",
        "writes per pod, one pod each, slow server": f"{slow.writes_per_pod:.2f}",
        f"{deployments} open checks": f"{share:.1%} of a core (at most {MAX_SHARE:.0%})",
    }
    wrong = [
        *(f"{name} was suspended wrongly, or not at all" for name in sorted(differ | quick.suspended)),
        *exceeded("writes per pod", quick.writes_per_pod, MAX_WRITES),
        *exceeded("callback to label, 99 %", late, MAX_SECONDS, " s"),
        *exceeded("CPU of open checks", share, MAX_SHARE),
    ]
    runs = {name: _figures(each) for name, each in (("slow", slow), ("quick", quick))}
    title = f"{deployments} Deployments, {rate:g} in a second, checked by an AlterShield server"
    return Answer({**runs, "open_checks": share}, [fields(title, rows)], wrong=wrong)


def _figures(outcome: Outcome) -> dict[str, Any]:
    return asdict(outcome) | {"failed": len(outcome.failed), "suspended": len(outcome.suspended)}
