"""A proxy in front of the API server that records the requests of a service account and those that are forbidden."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple
from urllib.parse import parse_qs

from aiohttp import web

from bench.availability.upstream import Upstream, passed_back
from kube_base.access.errors import NamespaceTerminatingError, from_status
from tests.support.threads import in_a_thread

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Request(NamedTuple):
    """The RBAC attributes of a request. `namespace` and `name` are empty if the request has none."""

    verb: str
    group: str
    resource: str
    """With the subresource, such as `deployments/status`."""
    namespace: str
    name: str


def request(method: str, path: str, query: str) -> Request | None:
    """The RBAC attributes of an HTTP request. None if its path is not that of a resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 2:
        group, rest = parts[1], parts[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    resource, name, subresource = (*rest, "", "", "")[:3]
    fields = parse_qs(query)
    if method == "GET":
        verb = "watch" if "watch" in fields else "get" if name else "list"
        selected = fields.get("fieldSelector", [""])[0]
        name = name or (selected.removeprefix("metadata.name=") if selected.startswith("metadata.name=") else "")
    else:
        verb = _VERBS[method]
    return Request(verb, group, f"{resource}/{subresource}" if subresource else resource, namespace, name)


class Recorder:
    """The requests that passed the proxy, and messages about those that the account has no permission for."""

    def __init__(self) -> None:
        self.asked: set[Request] = set()
        self.forbidden: list[str] = []
        self.url = ""


@contextlib.contextmanager
def recording(kubeconfig: str) -> Iterator[Recorder]:
    """Serve plain HTTP on loopback in front of the API server of `kubeconfig`. Callers send their own tokens."""
    with in_a_thread(_serving(kubeconfig)) as recorder:
        yield recorder


@contextlib.asynccontextmanager
async def _serving(kubeconfig: str) -> AsyncIterator[Recorder]:
    recorder = Recorder()
    async with Upstream.connected(kubeconfig) as upstream:

        async def handle(incoming: web.Request) -> web.StreamResponse:
            asked = request(incoming.method, incoming.path, incoming.query_string)
            if asked:
                recorder.asked.add(asked)
            async with upstream.asked(incoming, incoming.raw_path) as answer:
                if answer.status != 403:
                    return await passed_back(answer, incoming)
                refusal = await answer.read()
                error = from_status(403, json.loads(refusal))
                if not (isinstance(error, NamespaceTerminatingError) or "ValidatingAdmissionPolicy" in str(error)):
                    recorder.forbidden.append(f"{asked}: {error}")
                return web.Response(status=403, body=refusal, content_type=answer.content_type)

        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield recorder
        finally:
            await runner.cleanup()
