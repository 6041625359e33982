"""The path for receivers of `http` checks, whose callbacks are signed with the key of the check."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from kube_base.access.client import Client
from reconciler.cluster.caches import Caches
from reconciler.endpoints import check_callback
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.check_keys import CheckKeys
from reconciler.endpoints.check_signatures import CheckSignatures
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.intake import Intake
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.places import Places
from reconciler.endpoints.refusals import Refusals
from reconciler.endpoints.responses import acknowledged, not_acknowledged

logger = logging.getLogger(__name__)

_RESULT_SECONDS = 10.0  # for a callback about a check to be stored, before it is answered
_RESULTS = 64  # callbacks about checks that are stored at a time

ReceiveResult = Callable[[CheckCallback], Awaitable[bool]]
"""Stores the result of a check in the cluster. Returns false if the result changes nothing, because the check has one.
EndpointError: the check has not begun with this run. Any other error means that the callback is not stored."""


class CheckCallbackEndpoint:
    """Callbacks with results of checks. `client` is not closed; `clock` returns Unix seconds."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        intake: Intake,
        refusals: Refusals,
        metrics: CallbackMetrics,
        receive_result: ReceiveResult,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._intake = intake
        self._refusals = refusals
        self._metrics = metrics
        self._receive_result = receive_result
        self._signatures = CheckSignatures(clock)
        self._keys: CheckKeys | None = None
        self._results = Places(_RESULTS, "too many callbacks are being stored; send it again")

    def open(self) -> None:
        """Accept callbacks."""
        self._keys = CheckKeys(self._client, self._caches)

    async def close(self) -> None:
        """Close the connections."""
        if self._keys is not None:
            await self._keys.close()

    async def take(self, request: web.BaseRequest) -> web.Response:
        """A callback about a check. It is answered after it was stored, so that the sender learns if it was not
        stored."""
        if self._keys is None:
            raise EndpointError("the port is not open", 503, CallbackOutcome.FAILED)
        claim = self._signatures.claim(request.headers)
        async with self._intake.body(request, check_callback.MAX_BODY) as body:
            taken = check_callback.read(body)
            await self._signatures.verify(claim, taken.run, body, self._keys.key)
        changed = False
        try:
            changed = await self._store_result(taken)
        finally:
            if not changed:
                self._signatures.forget(claim)
        self._metrics.check_callbacks.labels(CallbackOutcome.ACCEPTED).inc()
        if not changed:
            return acknowledged("the check has a result already: nothing has changed")
        return acknowledged()

    async def _store_result(self, taken: CheckCallback) -> bool:
        """Store the result of a check. Returns false if it changes nothing."""
        run = taken.run
        about = {"namespace": run.namespace, "change_pod": run.change_pod, "check": run.check, "phase": run.phase}
        with self._results:
            try:
                async with asyncio.timeout(_RESULT_SECONDS):
                    changed = await self._receive_result(taken)
            except EndpointError as error:
                logger.warning("callback about a check refused", extra={**about, "run": str(run), "error": str(error)})
                raise
            except Exception as error:
                logger.warning("callback about a check not stored", extra={**about, "error": str(error)})
                message = "the callback could not be stored; send it again"
                raise EndpointError(message, 503, CallbackOutcome.FAILED) from error
        result = type(taken.result).__name__
        logger.info("callback about a check accepted", extra={**about, "result": result, "changed": changed})
        return changed

    def refuse(self, error: EndpointError) -> web.Response:
        """The answer to a callback that is refused."""
        self._metrics.check_callbacks.labels(error.outcome).inc()
        self._refusals.note(f"check {error.outcome}", error)
        return not_acknowledged(error)
