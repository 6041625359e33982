"""A gatekeeper on loopback, as the API server reaches it: over TLS."""

import asyncio
import contextlib
import datetime
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from altershield.process.certificate import Certificate
from altershield.process.listener import Listener
from command.install import webhooks
from gatekeeper.journal import Journal
from gatekeeper.listers import Listers
from gatekeeper.metrics import Metrics
from gatekeeper.server import Gatekeeper
from kube_base.access.client import Client
from kube_base.pki import Authority
from kube_base.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

from .reviews import MUTATING_PATH, ROUTES, StaticListers

JSON = {"Content-Type": "application/json"}

HOUR = datetime.timedelta(hours=1)
AUTHORITY = Authority.create("tests", lifetime=HOUR)


@dataclass
class Files:
    """A certificate and its key on disk."""

    certificate: Path
    key: Path

    @classmethod
    def at(cls, directory: Path) -> "Files":
        return cls(directory / "tls.crt", directory / "tls.key")

    def issue(self, lifetime: datetime.timedelta = HOUR) -> bytes:
        """Put a new pair in place; the certificate."""
        pair = AUTHORITY.issue("gatekeeper", hosts=["127.0.0.1"], lifetime=lifetime)
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)
        return pair.certificate


def trust() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.pair.certificate.decode())


def session(**options: object) -> aiohttp.ClientSession:
    """A client that trusts the gatekeeper's certificates."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust(), **options))  # type: ignore[arg-type]


@dataclass
class Served:
    gatekeeper: Gatekeeper
    metrics: Metrics
    journal: Journal
    certificate: Certificate
    tls: Listener
    plain: Listener
    unready: list[str]

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.tls.port}{path}"

    def plain_url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.plain.port}{path}"


@contextlib.asynccontextmanager
async def serving(
    directory: Path, listers: Listers | None = None, *, client_ca_file: Path | None = None, client: str = ""
) -> AsyncIterator[Served]:
    files = Files.at(directory)
    files.issue()
    certificate = Certificate(files.certificate, files.key, client_ca_file)
    certificate.reload()
    metrics = Metrics(certificate, ROUTES.values())
    journal = Journal(metrics)
    unready: list[str] = []
    gatekeeper = Gatekeeper(ROUTES, listers or StaticListers(), metrics, journal, lambda: unready, client=client)
    tls = Listener(gatekeeper.admit, "127.0.0.1", 0, certificate.context)
    plain = Listener(gatekeeper.health.answer, "127.0.0.1", 0)
    await tls.start()
    await plain.start()
    try:
        yield Served(gatekeeper, metrics, journal, certificate, tls, plain, unready)
    finally:
        await tls.stop()
        await plain.stop()
        journal.flush()


async def post(
    client: aiohttp.ClientSession, url: str, data: Any, headers: dict[str, str] = JSON
) -> tuple[int, dict[str, Any]]:
    async with client.post(url, data=data, headers=headers) as answer:
        return answer.status, json.loads(await answer.read())


async def raw(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=AUTHORITY.pair.certificate.decode())
    return await asyncio.open_connection("127.0.0.1", served.tls.port, ssl=context)


def head(*headers: str, path: str = MUTATING_PATH) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: gatekeeper", "Content-Type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


async def install_webhooks(admin: Client, url: str) -> None:
    """Create the webhook configurations for a gatekeeper at `url`."""
    made = webhooks.configurations("altershield", url, AUTHORITY.pair.certificate, system_namespace="none")
    for kind, obj in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), made, strict=True):
        await admin.create(kind, obj)
