"""How fast are evictions of a budget's pods decided, and how soon can a slot be used again?

Measured: three gatekeepers and a leading reconciler run on the sandbox's API server, without simulated nodes. First,
evictions of all pods of a PodUnavailableBudget are requested at once: 400 pods, of which 120 may be unavailable. The
reviews go directly to the gatekeepers, because an API server in Python would take longer than they take. Then pods are
replaced one by one, and the time from the readiness of a new pod until another pod may be evicted is measured.

How to read it: exactly as many evictions as slots must be admitted. Few writes of the budget's status mean that the
gatekeepers answer many reviews with one write.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
from aiohttp import web

from altershield.admission.webhooks import webhook_path
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.process.health import until_ready
from bench.harness.answer import Answer, quantiles
from bench.harness.pod_reviews import eviction
from bench.harness.sandbox import govern
from bench.harness.servers import LOOPBACK, certificate, gatekeeper, reconciler, running
from kube_base.access.client import Client
from kube_base.processes import free_ports
from kube_base.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from kube_sandbox.apiserver.server import ApiServer

GATEKEEPERS = 3
_SHOP = "shop"
_LABELS = {"app": "web"}
_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_POD = {"containers": [{"name": "web", "image": "web:1"}]}
_POLL = 0.005


@dataclass(frozen=True)
class Result:
    pods: int
    slots: int
    admitted: int
    seconds: float
    """The time until all reviews were answered."""
    writes: int
    """Writes of the budget's status, with conflicts."""
    replaced: int
    slot_p50: float
    slot_p99: float
    """Seconds from the moment when a pod is ready until another pod may be evicted."""


async def ask(
    pods: Annotated[int, typer.Option(help="Pods of the budget, each to be evicted at once.")] = 400,
    slots: Annotated[int, typer.Option(help="Pods that may be unavailable.")] = 120,
    replaced: Annotated[int, typer.Option(help="Pods that are replaced one by one.")] = 200,
) -> Answer:
    result = await _measure(pods, slots, replaced)
    notes = [
        f"{result.admitted} of {result.pods} simultaneous evictions were admitted, {result.slots} free slots",
        f"all were answered after {result.seconds:.2f} s, with {result.writes} writes of the status",
        f"from Ready to the next eviction: p50 {result.slot_p50:.3f} s, p99 {result.slot_p99:.3f} s",
    ]
    wrong = [] if result.admitted == slots else [f"{result.admitted} evictions were admitted instead of {slots}"]
    return Answer(asdict(result), notes=notes, wrong=wrong)


class Cluster:
    """The objects of the measurement, and the gatekeepers with these URLs."""

    def __init__(self, admin: Client, urls: list[str], http: aiohttp.ClientSession) -> None:
        self.admin = admin
        self._urls = urls
        self._http = http
        self._set: dict[str, Any] = {}
        self._reviews = 0

    async def create(self, pods: int, slots: int) -> list[str]:
        await govern(self.admin, _SHOP)
        selector = {"matchLabels": _LABELS}
        spec = {"replicas": pods, "selector": selector, "template": {"metadata": {"labels": _LABELS}, "spec": _POD}}
        above: dict[str, Any] = await self.admin.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, _SHOP)
        owned = {"name": "web-1", "ownerReferences": [_owner("Deployment", above)]}
        self._set = await self.admin.create(REPLICA_SETS, {"metadata": owned, "spec": spec}, _SHOP)
        found = [f"web-{number}" for number in range(pods)]
        for name in found:
            await self.start(name)
        budget = {"selector": selector, "maxUnavailable": slots}
        kind = {"apiVersion": POD_UNAVAILABLE_BUDGETS.api_version, "kind": POD_UNAVAILABLE_BUDGETS.kind}
        await self.admin.create(POD_UNAVAILABLE_BUDGETS, kind | {"metadata": {"name": "web"}, "spec": budget}, _SHOP)
        return found

    async def start(self, name: str) -> None:
        """Create a pod that is ready."""
        metadata = {"name": name, "labels": _LABELS, "ownerReferences": [_owner("ReplicaSet", self._set)]}
        await self.admin.create(PODS, {"metadata": metadata, "spec": _POD}, _SHOP)
        await self.admin.patch(PODS, {"status": _READY}, name, _SHOP, subresource="status")

    async def ask(self, name: str, *, dry_run: bool = False) -> bool:
        """Whether a gatekeeper allows to evict the pod. The gatekeepers are called in turn."""
        self._reviews += 1
        review = eviction(_SHOP)(self._reviews, 0)
        review["request"] |= {"name": name, "dryRun": dry_run}
        review["request"]["object"]["metadata"]["name"] = name
        url = self._urls[self._reviews % len(self._urls)]
        async with self._http.post(url, json=review, ssl=False) as answer:
            return bool((await answer.json())["response"]["allowed"])

    async def allowed(self) -> int:
        found: dict[str, Any] = await self.admin.get(POD_UNAVAILABLE_BUDGETS, "web", _SHOP)
        return int(found.get("status", {}).get("unavailableAllowed", -1))


def _owner(kind: str, owner: dict[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {"apiVersion": "apps/v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


async def _measure(pods: int, slots: int, replaced: int) -> Result:
    writes = 0

    @web.middleware
    async def count(request: web.Request, handler: Any) -> Any:
        nonlocal writes
        writes += request.method == "PUT" and "/podunavailablebudgets/" in request.path
        return await handler(request)

    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        async with ApiServer(middlewares=[count]) as api, contextlib.AsyncExitStack() as stack:
            kubeconfig.write_text(api.kubeconfig())
            admin = await stack.enter_async_context(await Client.connect(str(kubeconfig)))
            http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
            urls: list[str] = []
            cluster = Cluster(admin, urls, http)
            found = await cluster.create(pods, slots)
            urls += await stack.enter_async_context(_processes(Path(directory), kubeconfig))
            while await cluster.allowed() != slots:  # noqa: ASYNC110  (another process counts)
                await asyncio.sleep(0.1)
            await asyncio.gather(*(cluster.ask(each, dry_run=True) for each in found[: 10 * GATEKEEPERS]))
            before, began = writes, time.monotonic()
            answers = await asyncio.gather(*(cluster.ask(each) for each in found))
            seconds, written = time.monotonic() - began, writes - before
            gone = [name for name, may_go in zip(found, answers, strict=True) if may_go]
            waits = await _replace(cluster, gone, [name for name in found if name not in gone], replaced)
            return Result(pods, slots, len(gone), round(seconds, 2), written, *quantiles(waits))


async def _replace(cluster: Cluster, gone: list[str], others: list[str], count: int) -> list[float]:
    """Delete the pods whose evictions were allowed. Then start `count` pods one by one, and evict another pod each
    time. Returns the seconds until each of these evictions was allowed."""
    for name in gone:
        await cluster.admin.delete(PODS, name, _SHOP)
    waits = []
    for number in range(count):
        await cluster.start(f"new-{number}")
        began = time.monotonic()
        while not await cluster.ask(others[number]):  # noqa: ASYNC110  (another process decides)
            await asyncio.sleep(_POLL)
        waits.append(time.monotonic() - began)
        await cluster.admin.delete(PODS, others[number], _SHOP)
    return waits


@contextlib.asynccontextmanager
async def _processes(directory: Path, kubeconfig: Path) -> AsyncIterator[list[str]]:
    """Three gatekeepers and a reconciler. Yields the gatekeepers' URLs for evictions."""
    ports, health = free_ports(GATEKEEPERS), free_ports(GATEKEEPERS + 1)
    tls = certificate(directory)
    commands = [
        reconciler(kubeconfig, metrics_port=health[-1]),
        *(gatekeeper(kubeconfig, port, tls, metrics_port=probed) for port, probed in zip(ports, health, strict=False)),
    ]
    async with contextlib.AsyncExitStack() as stack:
        for command in commands:
            await stack.enter_async_context(running(command))
        async with asyncio.timeout(60):
            await until_ready(health)
        yield [f"https://{LOOPBACK}:{port}{webhook_path(PODS, 'eviction', mutating=False)}" for port in ports]
