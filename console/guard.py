"""Which requests the console answers at all, and the headers of its answers.

A page of another site can make a browser send requests to the console. A browser tells where they come from: `Origin`
and `Sec-Fetch-Site`. A name that an attacker points to this address (DNS rebinding) is in `Host`.
"""

import logging

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

logger = logging.getLogger(__name__)

MAX_BODY = 16 * 1024
"""Bytes of a form."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # with `no-referrer`, browsers send `Origin: null` with the console's own forms
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_FORM = "application/x-www-form-urlencoded"
_FETCH_SITE = "Sec-Fetch-Site"
_READS = (hdrs.METH_GET, hdrs.METH_HEAD)


def guarded(host: str) -> Middleware:
    """A middleware for a console at `http://HOST`, where `host` has the port."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = _refusal(request, host)
        if refused is not None:
            answer: web.StreamResponse = refused
        else:
            try:
                answer = await handler(request)
            except web.HTTPException as error:
                answer = error
            except Exception:
                logger.exception("a page could not be made")
                answer = web.Response(status=500, text="The console could not make this page; its log says why.\n")
        answer.headers.update(HEADERS)
        if isinstance(answer, web.HTTPException):
            raise answer
        return answer

    return guard


def _refusal(request: web.Request, host: str) -> web.Response | None:
    """The answer to a request that no page of the console sends; None: it may be one. It names no object."""
    if request.headers.getall(hdrs.HOST, []) != [host] or not request.raw_path.startswith("/"):
        return web.Response(status=421, text=f"This console answers as http://{host} only.\n")
    if request.method in _READS:
        return None
    if request.method != hdrs.METH_POST:
        return web.Response(status=405, text="The console knows GET, HEAD and POST.\n")
    if request.headers.getall(hdrs.ORIGIN, []) != [f"http://{host}"]:
        return web.Response(status=403, text="The console accepts forms of its own pages only.\n")
    if request.headers.get(_FETCH_SITE, "same-origin") != "same-origin":
        return web.Response(status=403, text="The console accepts forms of its own pages only.\n")
    if request.content_type != _FORM:
        return web.Response(status=415, text=f"The console accepts forms ({_FORM}) only.\n")
    return None
