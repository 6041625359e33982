"""The part of a Kubernetes API that a gatekeeper needs: lists of fixed objects, and watches without events."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from aiohttp import web

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.workloads import change_workload_name
from bench.harness.pod_reviews import cluster
from bench.harness.servers import LOOPBACK, Server, certificate, gatekeeper, port, serving, write_kubeconfig
from kube_base.resources import DEPLOYMENTS

_ROLLED_BACK = {
    "metadata": {"name": change_workload_name(DEPLOYMENTS.group_kind, "sleep", "0" * 32), "namespace": "default"},
    "status": {"status": "Rollback"},
}
_REFUSED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}


@contextlib.asynccontextmanager
async def gatekeeper_on_a_stub(
    directory: Path, core: int, more: Mapping[str, Sequence[object]] | None = None
) -> AsyncIterator[Server]:
    """A gatekeeper on this core. Its API has one rolled-back version, a budget that allows no disruption, and `more`
    objects by plural. The directory gets `kubeconfig`, `tls.crt` and `tls.key`."""
    async with api({CHANGE_WORKLOADS.plural: [_ROLLED_BACK], **cluster(), **(more or {})}) as api_port:
        kubeconfig = write_kubeconfig(directory / "kubeconfig", f"http://{LOOPBACK}:{api_port}")
        own = port()
        command = gatekeeper(kubeconfig, own, certificate(directory))
        async with serving(command, own, directory / "gatekeeper.log", core) as server:
            yield server


@contextlib.asynccontextmanager
async def api(objects: Mapping[str, Sequence[object]], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an API with these objects by plural, without streamed lists. Yields its port."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return web.json_response(_REFUSED, status=422)
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
    await web.TCPSite(runner, LOOPBACK, 0, ssl_context=tls).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
