"""The paths for an AlterShield server, whose requests are signed with the token of our platform."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from kube_base.access.backoff import retry_while_unavailable
from reconciler.endpoints import callback
from reconciler.endpoints.callback import Callback
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.intake import MAX_REQUEST, Intake
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.refusals import Refusals
from reconciler.endpoints.responses import acknowledged, not_acknowledged
from reconciler.endpoints.signatures import Signatures

logger = logging.getLogger(__name__)

MAX_CALLBACK = 1024 * 1024
"""Bytes of a callback."""

_RECEIVE_SECONDS = 4.0  # until a callback is answered, although it is not stored yet; the server waits six seconds
_STORE_SECONDS = 90.0  # for a callback to be stored
_STORE_ATTEMPTS = 15  # while the API server is not available, which takes longer than the time above
_STORING = 1000  # callbacks that are stored at a time

Receive = Callable[[Callback], Awaitable[None]]
"""Stores a callback in the cluster. It may get the same verdict twice, and nodes whose id is not stored yet.
EndpointError: the callback does not count. Any other error means that the callback is not stored."""


class CallbackEndpoint:
    """Callbacks with verdicts, and the server's test of the port."""

    def __init__(
        self, intake: Intake, signatures: Signatures, refusals: Refusals, metrics: CallbackMetrics, receive: Receive
    ) -> None:
        self._intake = intake
        self._signatures = signatures
        self._refusals = refusals
        self._metrics = metrics
        self._receive = receive
        self._storing: set[asyncio.Task[EndpointError | None]] = set()

    def stop(self) -> None:
        """Stop to store callbacks."""
        for task in self._storing:
            task.cancel()

    async def take(self, request: web.BaseRequest) -> web.Response:
        """Take a callback. It is answered after a short while, although it may not be stored yet."""
        claim = await self._signatures.claim(request.headers)
        async with self._intake.body(request, MAX_CALLBACK) as body:
            content = self._signatures.verify(claim, body)
            taken = callback.read(content, claim.timestamp / 1000)
        if len(self._storing) >= _STORING:
            self._signatures.give_back(claim)
            raise EndpointError("too many callbacks are being stored", 503, CallbackOutcome.FAILED)
        task = asyncio.create_task(self._store(taken))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)
        await asyncio.wait({task}, timeout=_RECEIVE_SECONDS)
        error = task.result() if task.done() else None
        if error is not None:
            self._signatures.give_back(claim)
            return not_acknowledged(error)
        return acknowledged()

    async def _store(self, taken: Callback) -> EndpointError | None:
        """Store the verdict of a callback, count and log the outcome, and return the error if it is not stored. This
        goes on after the answer, because the server sends no callback twice."""
        try:
            async with asyncio.timeout(_STORE_SECONDS):
                await retry_while_unavailable(lambda: self._receive(taken), _STORE_ATTEMPTS)
        except EndpointError as error:
            self._metrics.callbacks.labels(error.outcome).inc()
            logger.warning("callback refused", extra={**_described(taken), "reason": str(error)})
            return error
        except Exception:
            self._metrics.callbacks.labels(CallbackOutcome.FAILED).inc()
            logger.exception("callback not stored", extra=_described(taken))
            return EndpointError("the callback could not be stored", 500, CallbackOutcome.FAILED)
        self._metrics.callbacks.labels(CallbackOutcome.ACCEPTED).inc()
        logger.info("callback accepted", extra=_described(taken))
        return None

    def refuse(self, error: EndpointError) -> web.Response:
        """The answer to a callback that is refused."""
        self._metrics.callbacks.labels(error.outcome).inc()
        self._refusals.note(error.outcome, error)
        return not_acknowledged(error)

    async def live_test(self, request: web.BaseRequest) -> web.Response:
        """Acknowledge a request without a callback, with which the server tests the port."""
        claim = await self._signatures.claim(request.headers)
        async with self._intake.body(request, MAX_REQUEST) as body:
            self._signatures.verify(claim, body)
        return acknowledged()


def _described(taken: Callback) -> dict[str, Any]:
    """A callback in the log."""
    return {
        "check": taken.check_type,
        "order": taken.order,
        "node": taken.node,
        "stage": taken.stage,
        "verdict": taken.verdict,
    }
