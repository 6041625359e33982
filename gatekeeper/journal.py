"""Counts the decisions and writes one log line for each of them."""

import asyncio
import datetime
import logging
import sys
import time
from enum import StrEnum
from typing import Any

import msgspec

from altershield.admission.registration import Operation
from altershield.admission.webhooks import Webhook
from altershield.process import logs
from gatekeeper.errors import ReviewError
from gatekeeper.metrics import Metrics
from gatekeeper.request import Object, is_dry_run
from gatekeeper.response import Answer, Decision
from gatekeeper.review import WireRequest

logger = logging.getLogger("gatekeeper")

_FLUSH_SECONDS = 0.1
_FLUSH_LINES = 32  # a flush of this many delays a request by 0.1 ms
_MAX_USER = 253
_MAX_REFUSALS = 10  # log lines for each flush: anybody can cause many refusals at little cost


class _Line(msgspec.Struct, omit_defaults=True, gc=False):
    """The log line of one decision, with the fields and the order of altershield.process.logs."""

    time: datetime.datetime
    level: str
    logger: str
    message: Decision
    webhook: str
    operation: Operation
    namespace: str
    workload: str
    """`kind/name`."""
    user: str
    reason: StrEnum
    version: str
    milliseconds: float
    dry_run: bool = False


class _Noted(msgspec.Struct, gc=False):
    """One decision. Its line is made later, together with others: code that runs many times in a row is several times
    as fast as between two requests."""

    time: float
    """Unix seconds."""
    webhook: Webhook
    operation: Operation
    namespace: str
    name: str
    user: str
    decision: Decision
    reason: StrEnum
    version: str
    seconds: float
    """The duration of the decision."""
    dry_run: bool


class Journal:
    """Collects the decisions. It counts them and writes many of them to the log at a time, because one write per
    request takes longer than the decision. A line names the user, the object and the reason. It has no content of the
    object."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._noted: list[_Noted] = []
        self._refusals: list[tuple[str, ReviewError]] = []
        self._unlogged = 0
        self._timer: asyncio.TimerHandle | None = None

    def note(self, webhook: Webhook, request: WireRequest[Any], answer: Answer, seconds: float) -> None:
        """Add a decision that took `seconds`. Call this in the event loop."""
        self._noted.append(
            _Noted(
                time.time(),
                webhook,
                request.operation,
                request.namespace,
                _name(request),
                request.user_info.username[:_MAX_USER],
                answer.decision,
                answer.reason,
                answer.audit.get("version", ""),
                seconds,
                is_dry_run(request.dry_run, request.object),
            )
        )
        if len(self._noted) == _FLUSH_LINES:
            asyncio.get_running_loop().call_soon(self.flush)
        self._schedule()

    def refuse(self, webhook: Webhook, error: ReviewError) -> None:
        """Add a request that was answered with an HTTP error (4xx, 503). If there are many, only some are logged."""
        self._schedule()
        self._metrics.failed(webhook.name, error.code)
        if len(self._refusals) < _MAX_REFUSALS:
            self._refusals.append((webhook.name, error))
        else:
            self._unlogged += 1

    def flush(self) -> None:
        """Count and write everything that was added since the last flush. A decision with an undeclared outcome does
        not prevent this for the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        noted, self._noted = self._noted, []
        refusals, self._refusals = self._refusals, []
        unlogged, self._unlogged = self._unlogged, 0
        for each in noted:
            declared = self._metrics.decided(
                each.webhook.name,
                each.operation,
                each.decision,
                each.reason,
                each.user,
                each.seconds,
                dry_run=each.dry_run,
            )
            if each.decision == Decision.DENIED and not each.dry_run:
                self._metrics.denied(each.namespace, each.reason)
            if not declared:
                logger.error(
                    "a handler returned an outcome that it does not declare",
                    extra={"webhook": each.webhook.name, "decision": each.decision, "reason": each.reason},
                )
        for webhook, error in refusals:
            logger.warning("request refused", extra={"webhook": webhook, "code": error.code, "cause": str(error)})
        if unlogged:
            logger.warning("more requests were refused than the log shows", extra={"requests": unlogged})
        if not noted or not logger.isEnabledFor(logging.INFO):
            return
        lines = [_line(each) for each in noted]
        if sys.stderr.isatty():
            for line in lines:
                fields = msgspec.structs.asdict(line)
                logger.info(line.message, extra={key: fields[key] for key in _SHOWN if fields[key] is not False})
            return
        sys.stderr.buffer.write(logs.redacted(_encoder.encode_lines(lines)))
        sys.stderr.buffer.flush()

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)


def _line(noted: _Noted) -> _Line:
    return _Line(
        datetime.datetime.fromtimestamp(noted.time, datetime.UTC),
        "info",
        logger.name,
        noted.decision,
        noted.webhook.name,
        noted.operation,
        noted.namespace,
        f"{noted.webhook.resource.kind.lower()}/{noted.name}",
        noted.user,
        noted.reason,
        noted.version,
        round(noted.seconds * 1000, 3),
        noted.dry_run,
    )


def _name(request: WireRequest[Any]) -> str:
    """The object's name; empty if the API server has not generated it yet."""
    found = request.object if request.object is not None else request.old_object
    return request.name or (found.metadata.name if isinstance(found, Object) else "")


_SHOWN = _Line.__struct_fields__[4:]
_encoder = msgspec.json.Encoder()
