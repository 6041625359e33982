"""HTTP requests to an API server in this process, without a Kubernetes client."""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from kube_sandbox.apiserver.server import ApiServer

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass
class Answer:
    status: int
    body: bytes
    headers: Any = field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])


class Http:
    """Sends requests with the token of an administrator, or with another `Authorization` header."""

    def __init__(self, api: ApiServer, session: aiohttp.ClientSession) -> None:
        self.api = api
        self._session = session

    async def __call__(
        self, method: str, path: str, body: object = None, *, type_: str = "application/json", **headers: str
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": type_} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, self.api.url + path, data=data, headers=sent) as response:
            return Answer(response.status, await response.read(), response.headers)

    @contextlib.asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator["Events"]:
        async with self._session.get(self.api.url + path, headers=headers) as response:
            assert response.status == 200, await response.read()
            yield Events(response)


class Events:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Any:
        """The next event; None at the end of the watch."""
        line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Types and names of the next `count` events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


@contextlib.asynccontextmanager
async def serving(*, tls: bool = False, **options: Any) -> AsyncIterator[Http]:
    """Start an API server; yields a client with the token of an administrator. Without TLS, because each test has a
    server of its own."""
    async with ApiServer(tls=tls, **options) as api:
        context = ssl.create_default_context(cadata=api.ca_pem) if tls else False
        headers = {"Authorization": f"Bearer {api.add_token('admin', groups=['system:masters'])}"}
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            yield Http(api, session)
