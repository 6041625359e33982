"""What a request proves itself with at this moment, and how that is renewed.

Files (CA, client certificate and key, token) are looked at every few seconds and read anew when they changed. When
the API server answers 401, everything is read anew at once and an exec plugin is asked again, but seldom: a server
that goes on refusing must not start a process per request. All reading is done in a thread.
"""

import asyncio
import logging
import os
import ssl
from typing import NamedTuple

from altershield.errors import UsageError
from altershield.kube import credentials
from altershield.kube.configuration import Configuration
from altershield.kube.errors import UnreachableError

logger = logging.getLogger(__name__)

_FILES_PERIOD = 5.0  # seconds until files are looked at again
_FIRST_PAUSE = 5.0  # seconds after a 401 until another one leads to reading anew; doubles while they come
_LAST_PAUSE = 300.0

_Stamp = tuple[tuple[int, int, int], ...]


class Grant(NamedTuple):
    """The credentials of one request."""

    authorization: str
    tls: ssl.SSLContext


class Access:
    """The credentials of one configuration, shared by all clients of it."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._files = [
            path
            for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            if path is not None
        ]
        self._stamp = _stamp(self._files)
        self._tls = credentials.ssl_context(configuration)
        self._pair = credentials.plugin_pair(configuration)
        self._look_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()
        self._refusals = 0  # that led to reading anew, in a row
        self._deaf_until = float("-inf")

    async def current(self) -> Grant:
        """The credentials to send a request with. UnreachableError where they cannot be had."""
        try:
            authorization = str(await self.configuration.get_api_key_with_prefix("BearerToken") or "").strip()
        except Exception as error:  # whatever a token file or an exec plugin may lead to
            raise UnreachableError(
                f"the credentials for {self.configuration.host} cannot be renewed: {error}"
            ) from error
        now = asyncio.get_running_loop().time()
        if self._pair != credentials.plugin_pair(self.configuration):
            await self._build()
        elif self._files and now >= self._look_at:
            self._look_at = now + _FILES_PERIOD  # before waiting: one looks, the others go on
            await self._look()
        return Grant(authorization, self._tls)

    async def refused(self, grant: Grant) -> bool:
        """The API server answered 401 to `grant`. Whether there are other credentials now."""
        async with self._one_at_a_time:
            if self._differs(grant):
                return True  # another request had them read anew
            now = asyncio.get_running_loop().time()
            if now < self._deaf_until:
                return False
            if now >= self._deaf_until + _LAST_PAUSE:
                self._refusals = 0
            self._deaf_until = now + min(_FIRST_PAUSE * 2.0 ** min(self._refusals, 10), _LAST_PAUSE)
            self._refusals += 1
            logger.warning("the API server refuses our credentials, reading them anew")
            await self._renew()
            return self._differs(grant)

    def _differs(self, grant: Grant) -> bool:
        token = str(self.configuration.api_key.get("BearerToken") or "").strip()
        return grant.tls is not self._tls or (bool(token) and token != grant.authorization)

    async def _renew(self) -> None:
        hook = self.configuration.refresh_api_key_hook
        if isinstance(hook, credentials.Source):
            try:
                await hook.renew(self.configuration)
            except Exception as error:  # as above
                logger.warning("the credentials cannot be renewed", extra={"cause": str(error)})
        if self._pair != credentials.plugin_pair(self.configuration):
            await self._build()
        await self._look()

    async def _look(self) -> None:
        """Read certificates anew if their files changed."""
        if self._files and await asyncio.to_thread(_stamp, self._files) != self._stamp:
            await self._build()

    async def _build(self) -> None:
        """Make the TLS context anew; what cannot be used yet is tried again at the next look."""
        stamp, pair = await asyncio.to_thread(_stamp, self._files), credentials.plugin_pair(self.configuration)
        try:
            tls = await asyncio.to_thread(credentials.ssl_context, self.configuration)
        except UsageError as error:  # caught between two writes
            logger.warning("changed certificates cannot be used yet", extra={"cause": str(error)})
            return
        self._tls, self._stamp, self._pair = tls, stamp, pair
        logger.info("certificates were read anew")


def _stamp(files: list[str]) -> _Stamp:
    """What tells a file from what replaced it; zeros for one that is missing."""
    return tuple(map(_stamp_of, files))


def _stamp_of(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
