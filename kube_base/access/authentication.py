"""The credentials of each request, and their renewal.

Files (CA, client certificate and key) are checked every five seconds and read again when they change. When the API
server answers 401, all files are read again at once and an exec plugin runs again. Both are rate-limited: an API server
that refuses each request must not start one process per request. Files are read in a thread.
"""

import asyncio
import logging
import os
import ssl
from typing import NamedTuple

from kube_base.access import credentials
from kube_base.access.configuration import Configuration
from kube_base.access.credential_sources import ClientCertificate, CredentialSource, ExecPlugin
from kube_base.access.errors import UnreachableError
from kube_base.errors import UsageError

logger = logging.getLogger(__name__)

_FILES_PERIOD = 5.0  # seconds between two checks of the files
_MIN_INTERVAL = 5.0  # seconds after a 401 in which another 401 renews nothing; doubles with each renewal
_MAX_INTERVAL = 300.0

_Stamp = tuple[tuple[int, int, int], ...]


class RequestCredentials(NamedTuple):
    """The credentials of one request."""

    authorization: str
    tls: ssl.SSLContext


class Authentication:
    """The credentials of one configuration. All clients of the configuration share this object."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._files = [
            path
            for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            if path is not None
        ]
        self._stamp = _stamp(self._files)
        self._plugin_certificate = _plugin_certificate(configuration)
        self._tls = credentials.ssl_context(configuration, self._plugin_certificate)
        self._check_at = float("-inf")
        self._lock = asyncio.Lock()
        self._renewals = 0  # in a row, because of answers 401
        self._no_renewal_until = float("-inf")

    async def current(self) -> RequestCredentials:
        """The credentials for the next request. UnreachableError if they cannot be renewed."""
        try:
            authorization = str(await self.configuration.get_api_key_with_prefix("BearerToken") or "").strip()
        except Exception as error:  # a token file or an exec plugin can raise anything
            raise UnreachableError(
                f"the credentials for {self.configuration.host} cannot be renewed: {error}"
            ) from error
        now = asyncio.get_running_loop().time()
        if self._plugin_certificate != _plugin_certificate(self.configuration):
            await self._load_certificates()
        elif self._files and now >= self._check_at:
            self._check_at = now + _FILES_PERIOD  # set before the await, so that only one request checks the files
            await self._check_files()
        return RequestCredentials(authorization, self._tls)

    async def refused(self, used: RequestCredentials) -> bool:
        """Renew the credentials after the API server answered 401 to `used`. Return whether they differ from `used`
        now."""
        async with self._lock:
            if self._differs(used):
                return True  # another request has renewed them already
            now = asyncio.get_running_loop().time()
            if now < self._no_renewal_until:
                return False
            if now >= self._no_renewal_until + _MAX_INTERVAL:
                self._renewals = 0
            self._no_renewal_until = now + min(_MIN_INTERVAL * 2.0 ** min(self._renewals, 10), _MAX_INTERVAL)
            self._renewals += 1
            logger.warning("the API server refuses the credentials; they are read again")
            await self._renew()
            return self._differs(used)

    def _differs(self, used: RequestCredentials) -> bool:
        token = str(self.configuration.api_key.get("BearerToken") or "").strip()
        return used.tls is not self._tls or (bool(token) and token != used.authorization)

    async def _renew(self) -> None:
        hook = self.configuration.refresh_api_key_hook
        if isinstance(hook, CredentialSource):
            try:
                await hook.renew(self.configuration)
            except Exception as error:  # see `current`
                logger.warning("the credentials cannot be renewed", extra={"cause": str(error)})
        if self._plugin_certificate != _plugin_certificate(self.configuration):
            await self._load_certificates()
        await self._check_files()

    async def _check_files(self) -> None:
        """Read the certificates again if their files changed."""
        if self._files and await asyncio.to_thread(_stamp, self._files) != self._stamp:
            await self._load_certificates()

    async def _load_certificates(self) -> None:
        """Make a new TLS context. If the certificates cannot be used, the old context stays until the next check."""
        stamp, certificate = (
            await asyncio.to_thread(_stamp, self._files),
            _plugin_certificate(self.configuration),
        )
        try:
            tls = await asyncio.to_thread(credentials.ssl_context, self.configuration, certificate)
        except UsageError as error:  # for example, only one of the two files is written yet
            logger.warning("changed certificates cannot be used yet", extra={"cause": str(error)})
            return
        self._tls, self._stamp, self._plugin_certificate = tls, stamp, certificate
        logger.info("read the changed certificates")


def _plugin_certificate(configuration: Configuration) -> ClientCertificate | None:
    """The client certificate that an exec plugin returned, or None."""
    hook = configuration.refresh_api_key_hook
    return hook.pair if isinstance(hook, ExecPlugin) else None


def _stamp(files: list[str]) -> _Stamp:
    """Modification time, size and inode of each file: they change when the file changes. Zeros for a missing file."""
    return tuple(map(_stamp_of, files))


def _stamp_of(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
