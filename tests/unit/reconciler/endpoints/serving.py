"""The callback port on loopback, and requests of an AlterShield server."""

import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from prometheus_client import Counter

from altershield.api import names
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.endpoints.callback import Callback
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.server import Endpoints, Settings
from reconciler.machinery.metrics import Metrics
from reconciler.server import signature

PLATFORM = "kubernetes"
TOKEN = "altershield-operator"
CALLBACK = "/openapi/altershield/callback"
LIVE_TEST = "/openapi/altershield/liveTest"
ACCEPTED = {"success": True, "retry": False, "msg": None}
UNSIGNED = {"success": False, "retry": False, "msg": "the request is not signed with the token of this platform"}

Object = dict[str, Any]


async def token() -> str:
    return TOKEN


def rule(name: str = "errors", verdict: str = "FAIL", message: str = "5 % errors", **more: Any) -> Object:
    """A rule as the server sends it."""
    return {"name": name, "owner": "jane", "relationId": name, "verdict": verdict, "msg": message, **more}


def body(
    verdict: str = "pass", /, *rules: Object, check: str = "CHANGE_BATCH", stage: str = "POST", **request: Any
) -> bytes:
    """The body of a callback as the server sends it."""
    of_verdict = {
        "allFinish": True,
        "checkPass": verdict == "pass",
        "emergency": False,
        "rollback": False,
        "rules": list(rules),
        "verdict": verdict,
    }
    of_request = {
        "bizExecOrderId": "prod/web/42",
        "changeSceneKey": "com.alipay.altershield.kubernetes.rollingupdate",
        "defenseStageEnum": stage,
        "nodeId": "0" * 36,
        "verdict": of_verdict,
    }
    content = {"callbackRequest": of_request | request, "changeCheckType": check}
    return json.dumps(content, separators=(",", ":")).encode()


def signed(
    data: bytes, *, platform: str = PLATFORM, at: float | None = None, key: str = TOKEN, sign: str = ""
) -> dict[str, str]:
    """The headers of a request of the server. `at` is in Unix seconds; the default is now."""
    timestamp = int((time.time() if at is None else at) * 1000)
    return {
        signature.PLATFORM_HEADER: platform,
        signature.TIMESTAMP_HEADER: str(timestamp),
        signature.SIGN_HEADER: sign or signature.sign(timestamp, signature.body_content(data), key),
        "Content-Type": "application/json;UTF-8",
    }


@dataclass
class Served:
    """A port, and the callbacks that it passed on."""

    metrics: CallbackMetrics
    client: aiohttp.ClientSession
    now: float = field(default_factory=time.time)
    received: list[Callback] = field(default_factory=list)
    receive: Callable[[Callback], Awaitable[None]] | None = None
    """What happens to a callback; by default it is kept in `received`."""
    results: list[CheckCallback] = field(default_factory=list)
    """Callbacks about checks."""
    receive_result: Callable[[CheckCallback], Awaitable[bool]] | None = None
    """What happens to a callback about a check; by default it is kept in `results`, and changes something."""
    endpoints: Endpoints = field(init=False)
    scheme: str = "http"

    async def take(self, callback: Callback) -> None:
        if self.receive is not None:
            await self.receive(callback)
        self.received.append(callback)

    async def take_result(self, callback: CheckCallback) -> bool:
        changed = True if self.receive_result is None else await self.receive_result(callback)
        self.results.append(callback)
        return changed

    def url(self, path: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.endpoints.port}{path}"

    async def post(self, data: Any, headers: dict[str, str], path: str = CALLBACK) -> tuple[int, Object]:
        """The status and the body of the answer to a request of the server."""
        return await self.request("POST", path, data=data, headers=headers)

    async def request(self, method: str, path: str, **options: Any) -> tuple[int, Object]:
        async with self.client.request(method, self.url(path), **options) as answer:
            return answer.status, json.loads(await answer.read())

    def outcomes(self) -> dict[str, int]:
        """How many callbacks ended in which way, without zeros."""
        return _counts(self.metrics.callbacks)

    def check_outcomes(self) -> dict[str, int]:
        """The same for callbacks about checks."""
        return _counts(self.metrics.check_callbacks)


def _counts(counter: Counter) -> dict[str, int]:
    counts = {each: counter.labels(each)._value.get() for each in CallbackOutcome}
    return {each.value: int(count) for each, count in counts.items() if count}


@contextlib.asynccontextmanager
async def serving(
    caches: Caches | None = None,
    client: Client | None = None,
    *,
    tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
    **changes: Any,
) -> AsyncIterator[Served]:
    """A port that is open until the block ends. `changes` replaces settings; `tls` has the contexts of both sides."""
    async with contextlib.AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(Client(Configuration(host="http://127.0.0.1:1")))
        caches = caches or Caches(client, names.SYSTEM_NAMESPACE)
        metrics = Metrics()
        counted = CallbackMetrics(metrics.registry)
        connector = aiohttp.TCPConnector(ssl=tls[1] if tls else True)
        served = Served(counted, await stack.enter_async_context(aiohttp.ClientSession(connector=connector)))
        given: Any = {"host": "127.0.0.1", "port": 0, "platform": PLATFORM, "token": token} | changes
        settings = Settings(**given, context=tls[0] if tls else None)
        writer = Writer(client, caches, metrics)
        served.scheme = "https" if tls else "http"
        served.endpoints = Endpoints(
            settings, caches, client, writer, counted, served.take, served.take_result, lambda: served.now
        )
        await stack.enter_async_context(served.endpoints)
        yield served
