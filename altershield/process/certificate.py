"""The serving certificate, and the CAs of client certificates. Both are read from files, and read again when the files
change, without a restart."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_FIRST_SECONDS = 60.0  # in which a new installation provides its first certificate
_REFUSALS = ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED")


class Certificate:
    """A certificate and its key, read from files. The listener uses `context`, which never changes; each handshake uses
    the pair that was loaded last. A pair that cannot be used is logged once as an error, and the previous pair stays in
    use. Files that do not exist yet are an error after a minute: a new installation makes its certificate first. With
    `client_ca_file` (PEM), only clients with a certificate of one of these CAs get an answer."""

    def __init__(
        self,
        cert_file: Path,
        key_file: Path,
        client_ca_file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._pair = (cert_file, key_file)
        self._client_ca_file = client_ca_file
        self._files = (*self._pair, *([client_ca_file] if client_ca_file else []))
        self._loaded: list[bytes] | None = None
        self._reported: object = None
        self._current = self.context = _context()
        if client_ca_file is not None:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.sni_callback = self._present
        self.expires = 0.0
        """When the certificate in use expires, in Unix seconds. 0 before one is loaded."""
        self.lifetime = 0.0
        """The validity period of the certificate in use, in seconds. 0 before one is loaded."""

    @property
    def unusable(self) -> str:
        """Why clients cannot accept the certificate; empty: it exists and has not expired."""
        if self._loaded is None:
            return "there is no serving certificate yet"
        return "the serving certificate has expired" if self.expires <= self._clock() else ""

    async def follow(self) -> None:
        """Reload the files when they change, until cancelled. It polls their content, because that notices every way of
        replacing them, including the symbolic links of a mounted Secret."""
        while True:
            self.reload()
            await asyncio.sleep(_POLL_SECONDS)

    def reload(self) -> None:
        """Load the files if their content differs from the pair in use."""
        try:
            contents = [file.read_bytes() for file in self._files]
            if contents == self._loaded:
                return
            context = _context()
            # without a password, OpenSSL asks for the password of an encrypted key on the terminal
            context.load_cert_chain(*self._pair, password=b"")
            if self._client_ca_file is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self._client_ca_file)
            certificate = x509.load_pem_x509_certificates(contents[0])[0]
            expires = certificate.not_valid_after_utc
            lifetime = expires - certificate.not_valid_before_utc
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            self._report(error)
            return
        self._loaded, self._current, self._reported = contents, context, None
        self.expires, self.lifetime = expires.timestamp(), lifetime.total_seconds()
        logger.info("serving certificate loaded", extra={"file": str(self._pair[0]), "expires": expires.isoformat()})

    def _present(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _is_awaited(self, error: Exception) -> bool:
        """Whether the certificate or its key does not exist yet, as at the start of a new installation."""
        missing = isinstance(error, FileNotFoundError) and Path(error.filename) in self._pair
        return missing and self._loaded is None and self._clock() < self._began + _FIRST_SECONDS

    def _report(self, error: Exception) -> None:
        awaited = self._is_awaited(error)
        if (repr(error), awaited) == self._reported:
            return
        self._reported = repr(error), awaited
        if awaited:
            logger.info("waiting for the first serving certificate", extra={"file": str(self._pair[0])})
        else:
            logger.error(
                "cannot load the certificates; provide a certificate with its key, and the CAs of clients if set",
                extra={
                    "files": [str(file) for file in self._files],
                    "cause": str(error),
                    "serving": self._loaded is not None,
                },
            )


class _Connection(ssl.SSLObject):
    """The TLS of one connection. A client whose certificate is refused gets the alert with the reason, such as
    "certificate required". The event loop alone closes the connection first, and the client reports EOF."""

    _failed: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason not in _REFUSALS:
                raise
            # The event loop sends what it has, and calls again when the client answers. The client closes the
            # connection after an alert; if it does not, the time limit of handshakes ends it.
            self._failed = error
            raise ssl.SSLWantReadError from error


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Connection
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # every supported API server speaks it
    context.set_alpn_protocols(["http/1.1"])
    return context
