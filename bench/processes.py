"""Server processes for benchmarks, and the part of a Kubernetes API that a gatekeeper needs."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.workloads import change_workload_name
from bench.pod_reviews import cluster
from kube_base.errors import UsageError
from kube_base.resources import DEPLOYMENTS


@dataclass
class Server:
    process: asyncio.subprocess.Process
    port: int

    @property
    def cpu(self) -> float:
        """CPU time so far, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def waited(self) -> float:
        """Time so far in which its main thread was ready to run but had no core, in seconds."""
        return waited_for_a_core(Path(f"/proc/{self.process.pid}/schedstat"))

    @property
    def resident(self) -> int:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def waited_for_a_core(schedstat: Path) -> float:
    """The seconds so far in which a thread was ready to run but had no core, from its file in /proc."""
    return int(schedstat.read_text().split()[1]) / 1e9


async def answering(server: Server, log: Path) -> None:
    """Wait until the server is ready. The floor server has no readiness, so any response counts."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        while True:
            if server.process.returncode is not None:
                raise UsageError(f"a server ended during its start: {tail(log)}")
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"https://127.0.0.1:{server.port}/readyz", ssl=False) as answer:
                    if answer.status != 503:
                        return
            await asyncio.sleep(0.05)


def tail(log: Path) -> str:
    """The end of a log."""
    return log.read_text()[-500:]


@contextlib.asynccontextmanager
async def kubernetes(kubeconfig: Path) -> AsyncIterator[None]:
    """Serve the part of a Kubernetes API that the gatekeeper watches, and write a kubeconfig for it."""
    release = {
        "metadata": {"name": change_workload_name(DEPLOYMENTS.group_kind, "sleep", "0" * 32), "namespace": "default"},
        "status": {"status": "Rollback"},
    }

    async with api({CHANGE_WORKLOADS.plural: [release], **cluster()}) as port:
        write_kubeconfig(kubeconfig, f"http://127.0.0.1:{port}")
        yield


@contextlib.asynccontextmanager
async def api(objects: Mapping[str, Sequence[object]], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an API with these objects by plural, without streamed lists. Yields its port."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            refused = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
            return web.json_response(refused, status=422)
        if "watch" in request.query:
            watch = web.StreamResponse()
            await watch.prepare(request)
            await asyncio.Event().wait()
        items = [item for plural, found in objects.items() if request.path.endswith(f"/{plural}") for item in found]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def write_kubeconfig(file: Path, server: str) -> None:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": server}}],
        "users": [{"name": "bench", "user": {"token": "none"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    file.write_text(yaml.safe_dump(content))


def cpu() -> str:
    """The model and the number of cores of this machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} cores"
