"""An admission webhook for tests: served over TLS, with an answer that the test sets, and a list of the requests."""

import base64
import contextlib
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from kube_base.pki import Authority, KeyPair
from kube_sandbox.apiserver.attributes import Object

LIFETIME = datetime.timedelta(days=1)
Respond = Callable[[web.Request, Object], Awaitable[web.StreamResponse]]


class Hook:
    """`respond` makes the answer. `reviews` and `requests` are those received so far."""

    def __init__(self, authority: Authority, port: int) -> None:
        self.port = port
        self.bundle = base64.b64encode(authority.pair.certificate).decode()
        self.reviews: list[Object] = []
        self.requests: list[web.BaseRequest] = []
        self.connections: set[object] = set()
        self.respond: Respond = allow

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        review: Object = orjson.loads(body) if body else {}
        self.requests.append(request)
        self.reviews.append(review)
        self.connections.add(request.transport)
        return await self.respond(request, review)

    @property
    def client_config(self) -> Object:
        return {"url": f"https://127.0.0.1:{self.port}/path", "caBundle": self.bundle}


@contextlib.asynccontextmanager
async def serve(
    directory: Path, *, hosts: Sequence[str] = ("127.0.0.1",), pair: KeyPair | None = None
) -> AsyncIterator[Hook]:
    """Serve a Hook while the block runs. Its certificate is `pair`, by default a new one for `hosts`."""
    authority = Authority.create("hooks", lifetime=LIFETIME)
    pair = pair or authority.issue("hook", hosts=hosts, lifetime=LIFETIME)
    path = directory / "hook.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    hook = Hook(authority, 0)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hook.port = runner.addresses[0][1]
    try:
        yield hook
    finally:
        await runner.cleanup()


def review_of(review: Object, **response: Any) -> Object:
    """The AdmissionReview that answers `review`; allowed by default."""
    uid = review.get("request", {}).get("uid", "")
    return {
        "apiVersion": review.get("apiVersion", "admission.k8s.io/v1"),
        "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": True, **response},
    }


def answering(**response: Any) -> Respond:
    async def respond(request: web.Request, review: Object) -> web.Response:
        return web.json_response(review_of(review, **response))

    return respond


def patching(*operations: Object) -> Respond:
    return answering(patchType="JSONPatch", patch=base64.b64encode(orjson.dumps(operations)).decode())


def saying(status: int = 200, **rest: Any) -> Respond:
    """An answer with this status and content instead of an AdmissionReview."""

    async def respond(request: web.Request, review: Object) -> web.Response:
        return web.Response(status=status, **rest)

    return respond


allow = answering()
