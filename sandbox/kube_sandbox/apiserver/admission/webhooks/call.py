"""Calls webhooks over HTTPS, with one connection pool per CA bundle, address and client certificate, and with the error
texts of Go.

The rules are those of kube-apiserver's `pkg/util/webhook/client.go` and client-go's `rest/request.go`.
"""

import asyncio
import base64
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult

from kube_sandbox.apiserver.admission.webhooks.certificates import reason_invalid
from kube_sandbox.apiserver.admission.webhooks.client_certificates import ClientCertificate, ClientCertificates
from kube_sandbox.apiserver.admission.webhooks.review import CallError
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.gotext import quoted

Services = Callable[[str, str, int], tuple[str, int]]
"""Returns the host and port at which to reach the port of a Service (namespace, name, port). Raises LookupError with
the error text when there is none."""

_DEFAULT_TIMEOUT = 10
_MAX_RESPONSE = 64 << 20  # bytes; the real server has no limit, this one protects the memory of the test process
_MAX_SESSIONS = 200  # each rotated CA bundle leaves a session that is no longer used
_MAX_ERROR_TEXT = 2048  # bytes of a response body that an error text quotes
_MAX_ATTEMPTS = 10  # for responses with Retry-After
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}
_STATUS_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


_ALERTS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "certificate required",
    "TLSV1_ALERT_UNKNOWN_CA": "unknown certificate authority",
    "SSLV3_ALERT_BAD_CERTIFICATE": "bad certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "expired certificate",
}
"""The texts of Go for the alerts about client certificates, by the names of OpenSSL."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The address of a webhook: the URL, which messages show, and the host and port to connect to. With `connect` None,
    the host of the URL is resolved by DNS."""

    url: str
    connect: tuple[str, int] | None


class WebhookClient:
    """Posts reviews to webhooks. The owner must call `close`."""

    def __init__(self, services: Services, certificates: ClientCertificates | None = None) -> None:
        self._services = services
        self._certificates = certificates or ClientCertificates()
        self._sessions: dict[Hashable, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def post(self, spec: Object, review: bytes) -> bytes:
        """The body of a successful response. Raises CallError with the text of the real server."""
        seconds = spec.get("timeoutSeconds") or _DEFAULT_TIMEOUT
        bundle = spec["clientConfig"].get("caBundle") or ""
        target = self._target(spec["clientConfig"], seconds)
        session = await self._session(bundle, target)
        try:
            async with asyncio.timeout(seconds):
                return await _post(session, target.url, review)
        except TimeoutError as error:
            raise CallError(_failed_post(target.url, "context deadline exceeded")) from error
        except aiohttp.ClientConnectorCertificateError as error:
            connect = target.connect or (error.host, error.port or 443)
            why = await reason_invalid(error.host, connect, _pem(bundle), str(error.certificate_error))
            raise CallError(_failed_post(target.url, f"tls: failed to verify certificate: x509: {why}")) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallError(_failed_post(target.url, _network_text(error, target))) from error

    def _target(self, config: Object, seconds: int) -> _Target:
        service = config.get("service")
        if service is None:
            return _Target(f"{config['url']}?timeout={seconds}s", None)
        namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
        path = service.get("path") or "/"
        url = f"https://{name}.{namespace}.svc:{port}/{path.lstrip('/')}?timeout={seconds}s"
        try:
            return _Target(url, self._services(namespace, name, port))
        except LookupError as error:
            raise CallError(_failed_post(url, str(error.args[0]))) from error

    async def _session(self, bundle: str, target: _Target) -> aiohttp.ClientSession:
        parts = urlsplit(target.url)
        certificate = self._certificates.find(parts.hostname or "", parts.port or 443)
        key = (bundle, target.connect, certificate, _stamp(certificate))
        session = self._sessions.get(key)
        if session is None:
            if len(self._sessions) >= _MAX_SESSIONS:
                await self._sessions.pop(next(iter(self._sessions))).close()
            connector = aiohttp.TCPConnector(
                ssl=_tls(_pem(bundle), certificate),
                limit=0,
                resolver=_FixedResolver(target.connect) if target.connect else aiohttp.ThreadedResolver(),
                use_dns_cache=False,
            )
            session = aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
            self._sessions[key] = session
        return session


class _FixedResolver(AbstractResolver):
    """Resolves every name to one address. TLS still verifies the name of the Service."""

    def __init__(self, connect: tuple[str, int]) -> None:
        self._connect = connect

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().getaddrinfo(*self._connect, type=socket.SOCK_STREAM, family=family)
        return [
            ResolveResult(hostname=host, host=str(address[0]), port=int(address[1]), family=kind, proto=proto, flags=0)
            for kind, _, proto, _, address in found
        ]

    async def close(self) -> None:
        pass


async def _post(session: aiohttp.ClientSession, url: str, review: bytes) -> bytes:
    for _ in range(_MAX_ATTEMPTS):
        async with session.post(url, data=review) as response:
            body = await _body(response)
            wait = response.headers.get("Retry-After", "")
            if not (wait.isdigit() and (response.status == 429 or response.status >= 500)):
                break
        await asyncio.sleep(int(wait))
    return _checked(response, body)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    parts = []
    size = 0
    try:
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > _MAX_RESPONSE:
                raise CallError(f"failed to call webhook: the response is larger than {_MAX_RESPONSE >> 20} MiB")
    except aiohttp.ClientError as error:
        what = "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
        raise CallError(f"failed to call webhook: {what}") from error
    return b"".join(parts)


def _checked(response: aiohttp.ClientResponse, body: bytes) -> bytes:
    """The body of a response with status 200 to 206. Raises CallError for any other response."""
    content_type = response.headers.get("Content-Type", "") or "application/json"
    if 200 <= response.status <= 206:
        if not body:
            what = f"0-length response with status code: {response.status} and content type: {content_type}"
            raise CallError(f"failed to call webhook: {what}")
        return body
    message = _status_message(body)
    if message is None:
        is_text = content_type.startswith("text/") or "Content-Type" not in response.headers
        text = body[:_MAX_ERROR_TEXT].decode(errors="replace").strip() if is_text else "unknown"
        message = _status_text(response.status, text)
    raise CallError(f"failed to call webhook: {message}", response.status)


def _status_message(body: bytes) -> str | None:
    """The message in a Status with `status: Failure`, which is more precise than the code; None for another body."""
    with contextlib.suppress(orjson.JSONDecodeError):
        status: Any = orjson.loads(body)
        if isinstance(status, dict) and (status.get("kind") or "Status") == "Status":
            return str(status.get("message") or "") if status.get("status") == "Failure" else None
    return None


def _status_text(code: int, body: str) -> str:
    if code in (403, 415) or (code == 406 and body not in ("", "unknown")):
        return body
    if code == 406:
        return "the server was unable to respond with a content type that the client supports"
    if code in _STATUS_TEXTS:
        return _STATUS_TEXTS[code]
    if code >= 500:
        return f"an error on the server ({quoted(body)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _network_text(error: Exception, target: _Target) -> str:
    """The error text of Go's net and net/http packages for a failed connection."""
    parts = urlsplit(target.url)
    host, port = target.connect or (parts.hostname or "", parts.port or 443)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        wrong = "WRONG_VERSION_NUMBER" in str(error) or "HTTP_REQUEST" in str(error)
        return "http: server gave HTTP response to HTTPS client" if wrong else _tls_text(error.os_error, error)
    if isinstance(error.__cause__, ssl.SSLError):  # with TLS 1.3, the server checks the client after the handshake
        return _tls_text(error.__cause__, error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.TooManyRedirects):
        return "stopped after 10 redirects"
    code = error.os_error.errno if isinstance(error, aiohttp.ClientConnectorError) else None
    if code not in (None, 0, errno.ECONNRESET):
        return f"dial tcp {host}:{port}: connect: {os.strerror(code).lower()}"
    if isinstance(error, OSError):
        return f"read tcp {host}:{port}: read: connection reset by peer"
    return str(error)


def _tls_text(cause: OSError, error: Exception) -> str:
    reason = str(getattr(cause, "reason", None) or error)
    return f"remote error: tls: {_ALERTS.get(reason) or reason.lower().replace('_', ' ')}"


def _failed_post(url: str, why: str) -> str:
    return f"failed to call webhook: Post {quoted(url)}: {why}"


def _pem(bundle: str) -> str:
    try:
        return base64.b64decode(bundle, validate=True).decode("ascii")
    except ValueError:
        return "malformed CA bundle"


def _stamp(certificate: ClientCertificate | None) -> tuple[int, int] | None:
    try:
        return certificate.stamp() if certificate else None
    except OSError as error:
        raise CallError(f"could not get REST client: {error}", 500) from error


def _tls(pem: str, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """A TLS context that trusts every certificate in the bundle and no other, like Go. Without a bundle it trusts the
    system's roots. Raises CallError for a malformed bundle, or a client certificate that cannot be used."""
    try:
        context = ssl.create_default_context(cadata=pem or None)
    except (ssl.SSLError, ValueError) as error:
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        raise CallError(f"could not get REST client: {why}", 500) from error
    if certificate is not None:
        try:
            context.load_cert_chain(certificate.certificate, certificate.key, password=b"")
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise CallError(f"could not get REST client: {error}", 500) from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
