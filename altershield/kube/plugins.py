"""Sources of credentials that change while we run: token files and exec plugins."""

import asyncio
import collections
import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from altershield.kube.configuration import Configuration

_TOKEN_FILE_PERIOD = 60.0  # seconds until a token file is read again, as client-go does
_EARLY = 300.0  # seconds before an expiry that a plugin is asked again
_MOST_CALLS = 5  # of a plugin within a minute
_CALL_TIMEOUT = 60.0


class Pair(NamedTuple):
    """A client certificate and its key, both PEM. The key never shows in a repr."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Pair(...)"


@runtime_checkable
class Source(Protocol):
    """A configuration's `refresh_api_key_hook`: called before each request, it renews what is about to expire."""

    async def __call__(self, configuration: Configuration) -> None: ...

    async def renew(self, configuration: Configuration) -> None:
        """Read the credentials anew: those we have were refused."""


class TokenFile:
    """A token that is read again every minute."""

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


class Plugin:
    """An exec plugin, which gives a token, a client certificate, or both. Asked again before they expire."""

    def __init__(self, user: Any) -> None:
        self.token = ""
        self.pair: Pair | None = None
        from kubernetes_asyncio.config.exec_provider import ExecProvider  # takes half a second, and few need it

        self._provider = ExecProvider(user)
        self._expires = float("inf")  # Unix seconds
        self._calls: collections.deque[float] = collections.deque(maxlen=_MOST_CALLS)
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, configuration: Configuration) -> None:
        async with self._one_at_a_time:
            if _now() + _EARLY >= self._expires:
                await self._ask(configuration)

    async def renew(self, configuration: Configuration) -> None:
        async with self._one_at_a_time:
            await self._ask(configuration)

    async def _ask(self, configuration: Configuration) -> None:
        """Run the plugin, unless it ran too often lately: what it gave last counts on then."""
        if len(self._calls) == _MOST_CALLS and _now() - self._calls[0] < 60:
            return
        self._calls.append(_now())
        async with asyncio.timeout(_CALL_TIMEOUT):
            self._take(await self._provider.run())
        if self.token:
            configuration.api_key["BearerToken"] = self.token

    def _take(self, status: dict[str, Any]) -> None:
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if bool(certificate) != bool(key) or not (status.get("token") or certificate):
            raise ValueError("exec: the plugin gives neither a token nor a client certificate with its key")
        self.token = f"Bearer {status['token']}" if status.get("token") else ""
        self.pair = Pair(certificate, key) if certificate and key else None
        expiry = status.get("expirationTimestamp")
        self._expires = datetime.datetime.fromisoformat(expiry).timestamp() if expiry else float("inf")


def _now() -> float:
    return datetime.datetime.now(datetime.UTC).timestamp()
