"""The serving certificate: read from files, exchanged on the living server when they change."""

import asyncio
import logging
import ssl
from pathlib import Path

from cryptography import x509

_log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class Certificate:
    """A certificate and its key, as files hold them. `context` is for the listener and never changes; every
    handshake takes the pair that was loaded last. A pair that cannot be used is reported, once, and the one
    before stays."""

    def __init__(self, cert_file: Path, key_file: Path) -> None:
        self._files = (cert_file, key_file)
        self._loaded: tuple[bytes, bytes] | None = None
        self._reported: object = None
        self._current = self.context = _context()
        self.context.sni_callback = self._present
        self.expires = 0.0
        """When the pair in use ends to be valid, in Unix seconds; 0 before there is one."""

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    async def follow(self) -> None:
        """Reload whenever the files change, until cancelled. Polling their content sees every way of replacing
        them, the exchanged symlinks of a mounted Secret among them."""
        while True:
            self.reload()
            await asyncio.sleep(_POLL_SECONDS)

    def reload(self) -> None:
        """Load the pair if the files hold another one than is in use."""
        try:
            pair = (self._files[0].read_bytes(), self._files[1].read_bytes())
            if pair == self._loaded:
                return
            context = _context()
            # without a password OpenSSL would ask for that of an encrypted key on the terminal
            context.load_cert_chain(*self._files, password=b"")
            expires = x509.load_pem_x509_certificates(pair[0])[0].not_valid_after_utc
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            self._report(error)
            return
        self._loaded, self._current, self._reported = pair, context, None
        self.expires = expires.timestamp()
        _log.info("serving certificate loaded", extra={"file": str(self._files[0]), "expires": expires.isoformat()})

    def _present(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _report(self, error: Exception) -> None:
        if repr(error) != self._reported:
            self._reported = repr(error)
            _log.error(
                "serving certificate cannot be loaded, put a matching pair in place",
                extra={"files": [str(file) for file in self._files], "cause": str(error), "serving": self.loaded},
            )


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
