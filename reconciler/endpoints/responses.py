"""The form of the port's answers: those to callbacks, and the envelope of the open API."""

from typing import Any

import msgspec
from aiohttp import hdrs, web

from reconciler.endpoints.endpoint_errors import EndpointError

RETRIED = (500, 503)
"""HTTP status codes of failures that may pass."""

_HEADERS = {hdrs.CONTENT_TYPE: "application/json", hdrs.CACHE_CONTROL: "no-store"}
_CODES = {400: "101", 401: "102", 403: "102", 404: "105", 405: "103", 408: "101", 409: "103", 413: "101"}
"""AlterShield's result codes, by HTTP status; all others are `901`."""
_OK = "000"


def acknowledged(message: str | None = None) -> web.Response:
    """The answer that the open API defines for callbacks."""
    return _json(200, {"success": True, "retry": False, "msg": message})


def not_acknowledged(error: EndpointError) -> web.Response:
    """The answer to a callback that is refused."""
    return _json(error.code, {"success": False, "retry": error.code in RETRIED, "msg": str(error)})


def refused(error: EndpointError) -> web.Response:
    """The answer to a request that is refused, in the envelope of the open API."""
    return envelope(error.code, success=False, message=str(error))


def envelope(status: int, *, success: bool, message: str | None = None, domain: Any = None) -> web.Response:
    """The envelope of the open API, with the HTTP status that matches."""
    code = _OK if success else _CODES.get(status, "901")
    answer = _json(status, {"success": success, "resultCode": code, "msg": message, "domain": domain})
    if status == 401:
        answer.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return answer


def _json(status: int, content: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(content), headers=_HEADERS)
