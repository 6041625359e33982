"""Sends the results of checks to the client: signed, at most once, whatever the client answers."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from kube_sandbox.altershield_server import chance, signature
from kube_sandbox.altershield_server.checks import Clock, Sleep
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.rules import verdict_body
from kube_sandbox.altershield_server.script import Script
from kube_sandbox.altershield_server.vocabulary import Stage

CONTENT_TYPE = "application/json;UTF-8"
"""Malformed, as the published server sends it."""

TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=6.0, sock_read=6.0)
_HOLD = 5.0  # seconds: the longest wait of a callback for another one
_KEPT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A callback that was sent, or was lost as scripted."""

    time: float
    node: str
    order: str
    stage: Stage
    verdict: str
    rules: int
    """The number of rules in it."""

    status: int | None
    """The HTTP status of the answer; None without an answer."""

    error: str = ""


@dataclass(kw_only=True)
class Callbacks:
    """`url` may change at any time; with None, no callbacks are sent, as for a scene without a callback URL."""

    url: str | None
    platform: str
    token: str
    script: Callable[[], Script]
    clock: Clock
    sleep: Sleep
    session: aiohttp.ClientSession | None = None

    def __post_init__(self) -> None:
        self.sent: deque[Callback] = deque(maxlen=_KEPT)
        self._next_sent = asyncio.Event()

    async def deliver(self, node: Node, stage: Stage) -> None:
        """Send the callback of a stage, with the faults of the script."""
        script = self.script()
        faults, seed = script.callbacks, script.seed
        key = (node.order.id, node.batch, stage, node.checks[stage].run)
        await self.sleep(chance.between(faults.delay, seed, "callback delay", *key))
        verdict, rules = node.reported(stage)
        content = callback_body(node, stage, verdict_body(verdict, rules))
        headers = self._headers(content)
        if chance.happens(faults.lose, seed, "lose", *key):
            self._record(node, stage, verdict, len(rules), None, "lost by the script")
            return
        if chance.happens(faults.late, seed, "late", *key):
            await self.sleep(chance.between(faults.late_by, seed, "late by", *key))
        if chance.happens(faults.reorder, seed, "reorder", *key):
            await self._hold()
        times = 2 if chance.happens(faults.duplicate, seed, "duplicate", *key) else 1
        for _ in range(times):
            status, error = await self.post(content, headers)
            self._record(node, stage, verdict, len(rules), status, error)
        self._next_sent.set()
        self._next_sent = asyncio.Event()

    async def post(self, content: str, headers: dict[str, str] | None = None) -> tuple[int | None, str]:
        """Post a body to the callback URL; returns the status of the answer, or None and the error."""
        if self.session is None or self.url is None:
            return None, "there is no callback URL"
        try:
            async with self.session.post(
                self.url,
                data=content.encode(),
                headers=headers or self._headers(content),
                timeout=TIMEOUT,
                allow_redirects=False,
            ) as response:
                return response.status, ""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return None, f"{type(error).__name__}: {error}"

    def _headers(self, content: str) -> dict[str, str]:
        signed = signature.headers(self.platform, self.token, content, int(self.clock() * 1000))
        return {"Content-Type": CONTENT_TYPE, **signed}

    async def _hold(self) -> None:
        other = asyncio.ensure_future(self._next_sent.wait())
        limit = asyncio.ensure_future(self.sleep(_HOLD))
        try:
            await asyncio.wait((other, limit), return_when=asyncio.FIRST_COMPLETED)
        finally:
            other.cancel()
            limit.cancel()

    def _record(self, node: Node, stage: Stage, verdict: str, rules: int, status: int | None, error: str) -> None:
        self.sent.append(
            Callback(
                time=self.clock(),
                node=node.id,
                order=node.order.id,
                stage=stage,
                verdict=verdict,
                rules=rules,
                status=status,
                error=error,
            )
        )


def callback_body(node: Node, stage: Stage, verdict: dict[str, Any]) -> str:
    """The JSON of a callback: alphabetical keys, without members that are null."""
    body = {
        "callbackRequest": {
            "bizExecOrderId": node.order.id,
            "changeSceneKey": node.scene,
            "defenseStageEnum": stage,  # `defenseStage` in requests
            "nodeId": node.id,
            "verdict": verdict,
        },
        "changeCheckType": node.kind,
    }
    return orjson.dumps(_without_nulls(body), option=orjson.OPT_SORT_KEYS).decode()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
