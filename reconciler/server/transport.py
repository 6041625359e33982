"""Signed HTTP requests to an AlterShield server, and the errors that follow from its answers. Nothing is repeated,
except for a call that the server refused with an old token."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import aiohttp

from altershield.process.request_progress import Progress, tracing
from altershield.texts import one_line
from kube_base.errors import UsageError
from reconciler.server import answers, signature
from reconciler.server.answers import Envelope
from reconciler.server.server_errors import NotAllowedError, RejectedError, UnavailableError
from reconciler.server.server_settings import Settings
from reconciler.server.token_file import TokenFile

T = TypeVar("T")

logger = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=10.0, sock_connect=3.0)
_KEEP_ALIVE = 2.0  # seconds; the server must not close a connection at the moment at which a call begins on it
_RETRYABLE = (404, 408, 421, 425, 429)  # a proxy sends these while the server is replaced or overloaded

_ADVICE = {
    answers.ILLEGAL_ARGUMENT: "check --server-tenant, --server-platform and --server-scene, which the server must know",
    answers.DENIED: "check --server-platform and --server-token-file",
}


class Call(NamedTuple):
    """A call. `purpose` completes the sentence "cannot …"."""

    purpose: str
    path: str
    body: Mapping[str, Any] | None
    """None: a GET request."""
    query: Mapping[str, str] = {}


class Transport:
    """One HTTP session. Create it while the event loop runs, and close it."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        """`now` returns Unix seconds."""
        self._settings = settings
        self._now = now
        self._token_file = TokenFile(settings.token_file, _loop_time) if settings.token_file is not None else None
        if self._token_file is None:
            logger.warning(
                "there is no --server-token-file: requests to the AlterShield server are signed with an empty token, "
                "which only a server that checks no signatures accepts, and callbacks are refused",
                extra={"server": settings.url},
            )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # a small compressed answer can be a large one
            trust_env=False,
            timeout=_TIMEOUT,
            trace_configs=[tracing()],
        )

    async def close(self) -> None:
        await self._session.close()

    async def send(self, call: Call, type_: type[T]) -> T:
        """The content of the answer. AlterShieldServerError if the call did not succeed."""
        token = await self._token(call)
        answer = await self._answer(call, token)
        denied = not answer.success and answer.code == answers.DENIED
        if denied and self._token_file is not None and await self._token_file.differs(token):
            answer = await self._answer(call, await self._token(call))  # the server did nothing with the first call
        if not answer.success:
            raise self._refused(call, answer)
        try:
            return answers.content(answer, type_)
        except ValueError as error:
            raise self._unreadable(call, error) from error

    async def _token(self, call: Call) -> str:
        if self._token_file is None:
            return ""
        try:
            return await self._token_file.current()
        except UsageError as error:
            raise UnavailableError(f"cannot {call.purpose}: {error}", delivered=False) from error

    async def _answer(self, call: Call, token: str) -> Envelope:
        status, body = await self._exchange(call, token)
        if status != 200:
            text = one_line(body[:1024].decode(errors="replace"), 256)
            if 400 <= status < 500 and status not in _RETRYABLE:
                raise self._rejected(call, f"HTTP {status}", text, "check --server-url")
            raise self._unavailable(call, f"it answered HTTP {status}")
        if not body.strip():  # the server's code answers so after an exception that it does not handle
            raise self._unavailable(call, "its answer is empty")
        try:
            return answers.envelope(body)
        except ValueError as error:
            raise self._unreadable(call, error) from error

    async def _exchange(self, call: Call, token: str) -> tuple[int, bytes]:
        """HTTP status and body. UnavailableError if there is no complete answer."""
        data = None if call.body is None else json.dumps(call.body, separators=(",", ":")).encode()
        progress = Progress()
        try:
            async with self._session.request(
                "GET" if data is None else "POST",
                self._settings.url + call.path,
                params=call.query,
                data=data,
                headers=self._headers(call, data, token),
                allow_redirects=False,
                trace_request_ctx=progress,
            ) as response:
                body = bytearray()
                while chunk := await response.content.readany():
                    body += chunk
                    if len(body) > answers.MAX_ANSWER:
                        response.close()
                        raise self._unavailable(call, f"its answer is longer than {answers.MAX_ANSWER} bytes")
                return response.status, bytes(body)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = one_line(str(error), 256) or type(error).__name__
            cause = "no complete answer" if progress.sent else "no connection"
            raise self._unavailable(call, f"{cause} ({reason})", delivered=progress.sent) from error

    def _headers(self, call: Call, data: bytes | None, token: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "altershield"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        timestamp = round(self._now() * 1000)
        content = signature.query_content(call.query) if data is None else signature.body_content(data)
        headers[signature.PLATFORM_HEADER] = self._settings.platform
        headers[signature.TIMESTAMP_HEADER] = str(timestamp)
        headers[signature.SIGN_HEADER] = signature.sign(timestamp, content, token)
        return headers

    def _refused(self, call: Call, answer: Envelope) -> UnavailableError | RejectedError | NotAllowedError:
        """The error for an answer without success."""
        code, text = answer.code, answer.text
        if code in answers.SERVER_ERRORS:
            return self._unavailable(call, f"it failed with {code} ({text})")
        if code == answers.NOT_SUPPORTED:
            state = answer.state
            cause = f"its check is in the state {state}" if state else "the server does not know the batch"
            message = f"cannot {call.purpose} at the AlterShield server at {self._settings.url}: {cause} ({text})"
            return NotAllowedError(message, state=state, text=text)
        return self._rejected(call, code, text, _ADVICE.get(code, "see the server's log"))

    def _rejected(self, call: Call, code: str, text: str, advice: str) -> RejectedError:
        message = (
            f"cannot {call.purpose}: the AlterShield server at {self._settings.url} refused with {code or 'no code'}"
        )
        return RejectedError(f"{message} ({text}); {advice}", code=code, text=text)

    def _unreadable(self, call: Call, error: ValueError) -> UnavailableError:
        return self._unavailable(call, f"its answer cannot be read ({error})")

    def _unavailable(self, call: Call, cause: str, *, delivered: bool = True) -> UnavailableError:
        return UnavailableError(
            f"cannot {call.purpose}: the AlterShield server at {self._settings.url} is unavailable: {cause}; "
            "check that it runs and can be reached",
            delivered=delivered,
        )


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
