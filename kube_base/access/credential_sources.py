"""Credentials that change while the process runs: token files and exec plugins."""

import asyncio
import collections
import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kube_base.access.configuration import Configuration

_TOKEN_FILE_PERIOD = 60.0  # seconds until a token file is read again, as in client-go
_RENEW_BEFORE = 300.0  # seconds before the expiry, when the plugin runs again
_MAX_CALLS = 5  # of a plugin, per minute
_CALL_TIMEOUT = 60.0


class ClientCertificate(NamedTuple):
    """A client certificate and its key, both PEM. The repr does not contain the key."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "ClientCertificate(...)"


@runtime_checkable
class CredentialSource(Protocol):
    """A configuration's `refresh_api_key_hook`. It is called before each request and renews credentials that expire
    soon."""

    async def __call__(self, configuration: Configuration) -> None: ...

    async def renew(self, configuration: Configuration) -> None:
        """Read the credentials again, because the API server refused the present ones."""


class TokenFile:
    """A token in a file, which is read again every minute."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._due = float("-inf")

    async def __call__(self, configuration: Configuration) -> None:
        if asyncio.get_running_loop().time() >= self._due:
            await self.renew(configuration)

    async def renew(self, configuration: Configuration) -> None:
        token = await asyncio.to_thread(self._path.read_text)
        configuration.api_key["BearerToken"] = f"Bearer {token.strip()}"
        self._due = asyncio.get_running_loop().time() + _TOKEN_FILE_PERIOD


class ExecPlugin:
    """An exec plugin, which returns a token, a client certificate, or both. It runs again before they expire."""

    def __init__(self, user: Any) -> None:
        self.token = ""
        self.pair: ClientCertificate | None = None
        from kubernetes_asyncio.config.exec_provider import (
            ExecProvider,
        )  # the import takes half a second, and few kubeconfigs need it

        self._provider = ExecProvider(user)
        self._expires = float("inf")  # Unix seconds
        self._calls: collections.deque[float] = collections.deque(maxlen=_MAX_CALLS)
        self._lock = asyncio.Lock()

    async def __call__(self, configuration: Configuration) -> None:
        async with self._lock:
            if _now() + _RENEW_BEFORE >= self._expires:
                await self._run(configuration)

    async def renew(self, configuration: Configuration) -> None:
        async with self._lock:
            await self._run(configuration)

    async def _run(self, configuration: Configuration) -> None:
        """Run the plugin. If it ran five times in the last minute, keep its last credentials instead."""
        if len(self._calls) == _MAX_CALLS and _now() - self._calls[0] < 60:
            return
        self._calls.append(_now())
        async with asyncio.timeout(_CALL_TIMEOUT):
            self._take(await self._provider.run())
        if self.token:
            configuration.api_key["BearerToken"] = self.token

    def _take(self, status: dict[str, Any]) -> None:
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if bool(certificate) != bool(key) or not (status.get("token") or certificate):
            raise ValueError("exec: the plugin returns neither a token nor a client certificate with its key")
        self.token = f"Bearer {status['token']}" if status.get("token") else ""
        self.pair = ClientCertificate(certificate, key) if certificate and key else None
        expiry = status.get("expirationTimestamp")
        self._expires = datetime.datetime.fromisoformat(expiry).timestamp() if expiry else float("inf")


def _now() -> float:
    return datetime.datetime.now(datetime.UTC).timestamp()
