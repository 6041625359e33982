"""Whether an HTTP request may have reached the server, for clients that must not repeat such a request."""

import types

import aiohttp


class Progress:
    """The progress of a request, as its `trace_request_ctx`."""

    def __init__(self) -> None:
        self.sent = False
        """Whether a part of the request was written to a connection, so that the server may have received it."""


def tracing() -> aiohttp.TraceConfig:
    """A trace configuration for a session, which sets the `Progress` of its requests."""

    async def sent(
        _session: aiohttp.ClientSession, context: types.SimpleNamespace, _: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        context.trace_request_ctx.sent = True

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(sent)
    return config
