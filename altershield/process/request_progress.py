"""Whether an HTTP request may have reached the other side, for clients that must not repeat it then."""

import types

import aiohttp


class Progress:
    """How far a request came. It is the `trace_request_ctx` of the request."""

    def __init__(self) -> None:
        self.sent = False
        """Whether a part of it was written to a connection, so that the other side may have received it."""


def tracing() -> aiohttp.TraceConfig:
    """Makes a session note the progress of its requests."""

    async def sent(
        _session: aiohttp.ClientSession, context: types.SimpleNamespace, _: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        context.trace_request_ctx.sent = True

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(sent)
    return config
