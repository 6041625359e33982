"""Constant load: releases of Deployments at a fixed rate, independent of the responses.

Request number n is due n / rate seconds after the start. It is sent at that time, even if earlier requests still wait,
and its latency counts from that time. So the latency includes the time for which a stalled gatekeeper delays users.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self

import aiohttp
import msgspec
import orjson

from altershield.api import labels
from altershield.api.fingerprint import Template, canonical, fingerprint
from bench.availability.losses import Sent
from bench.harness.deployments import deployment
from bench.harness.waiting import until
from kube_base.access import credentials
from kube_base.access.client import Client, PatchType
from kube_base.meta import ObjectMeta
from kube_base.resources import DEPLOYMENTS

UNGATED = "ungated"
"""Start of the message about a release that was admitted without its version."""

_ANSWER_SECONDS = 60.0
_UPDATED = 50  # Deployments that are updated in turn; so many that updates of the same one do not overlap


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: bytes
    content_type: str = "application/json"


class Load:
    """Alternates between creating and updating Deployments. They are paused and have no replicas, so they have no
    pods."""

    def __init__(self, session: aiohttp.ClientSession, server: str, namespace: str, rate: float) -> None:
        self.sent: list[Sent] = []
        self._session = session
        self._server = server
        self._path = DEPLOYMENTS.path(namespace)
        self._rate = rate
        self._due = 0.0  # when the last request was due
        self._under_way: set[asyncio.Task[None]] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(cls, admin: Client, namespace: str, rate: float) -> AsyncIterator[Self]:
        """A load with its own connections and without a limit, because `Client` limits requests and their time."""
        configuration = admin.configuration
        token = await configuration.get_api_key_with_prefix("BearerToken")
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=credentials.ssl_context(configuration)),
            headers={"Authorization": token.strip()} if token else {},
            timeout=aiohttp.ClientTimeout(_ANSWER_SECONDS),
        ) as session:
            yield cls(session, admin.server, namespace, rate)

    async def prepare(self) -> None:
        """Create the Deployments that are updated later."""
        for number in range(_UPDATED):
            if failure := await self._send(self._create(f"updated-{number}")):
                raise RuntimeError(f"the load cannot begin: {failure}")

    async def run(self) -> None:
        """Send until cancelled."""
        loop = asyncio.get_running_loop()
        began, number = loop.time(), 0
        while True:
            due = began + number / self._rate
            await asyncio.sleep(due - loop.time())
            self._due = due
            task = asyncio.create_task(self._release(number, due))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            number += 1

    async def settled(self, moment: float) -> None:
        """Wait for the end of all requests that were due before this moment."""
        await until(lambda: self._due >= moment, "the load to be sent")
        await asyncio.gather(*self._under_way)

    async def _release(self, number: int, due: float) -> None:
        failure = await self._send(self._update(number) if number % 2 else self._create(f"created-{number}"))
        self.sent.append(Sent(due, asyncio.get_running_loop().time() - due, failure))

    async def _send(self, request: _Request) -> str:
        headers = {"Content-Type": request.content_type}
        url = self._server + request.path
        try:
            async with self._session.request(request.method, url, data=request.body, headers=headers) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        return _ungated(body) if answer.status < 300 else str(orjson.loads(body).get("message"))

    def _create(self, name: str) -> _Request:
        return _Request("POST", self._path, orjson.dumps(deployment(name, replicas=0, paused=True)))

    def _update(self, number: int) -> _Request:
        patch = {"spec": {"template": {"metadata": {"annotations": {"release": str(number)}}}}}
        path = f"{self._path}/updated-{number // 2 % _UPDATED}"
        return _Request("PATCH", path, orjson.dumps(patch), PatchType.STRATEGIC)


class _Spec(msgspec.Struct):
    template: Template


class _Stored(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec


def _ungated(answer: bytes) -> str:
    """A message if the stored Deployment does not have the version of its template, else an empty string."""
    stored = msgspec.json.decode(answer, type=_Stored)
    template = stored.spec.template
    stamped = (template.metadata or {}).get("labels")
    found = {
        stored.metadata.labels.get(labels.VERSION),
        stamped.get(labels.VERSION) if isinstance(stamped, dict) else None,
    }
    expected = fingerprint(canonical(template))
    return "" if found == {expected} else f"{UNGATED}: the Deployment has the versions {found} instead of {expected}"
