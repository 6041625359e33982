"""What became of the requests: counted, and told in the log with one line each."""

import asyncio
import datetime
import logging
import sys

import msgspec

from gatekeeper.metrics import Metrics
from gatekeeper.review import Response, Review

logger = logging.getLogger("gatekeeper")

_FLUSH_SECONDS = 0.1
_MAX_USER = 253


class _Line(msgspec.Struct, gc=False):
    """What is noted of a decision, in the order and form of altershield.logs."""

    time: datetime.datetime
    level: str
    logger: str
    message: str
    """The decision."""
    webhook: str
    operation: str
    namespace: str
    workload: str
    """As `kind/name`."""
    user: str
    reason: str
    version: str
    milliseconds: float


class Journal:
    """Decisions are noted as they fall, and counted and written some at a time: done at once, each by itself, that
    takes longer than to decide. A line tells who, what and why, never what is in the object."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._lines: list[_Line] = []

    def note(self, webhook: str, review: Review, response: Response, seconds: float) -> None:
        """Note a decision that took `seconds`. To be called in the event loop."""
        if not self._lines:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        change = review.change
        self._lines.append(
            _Line(
                datetime.datetime.now(datetime.UTC),
                "info",
                logger.name,
                response.decision,
                webhook,
                review.operation,
                change.namespace if change else "",
                f"{change.kind}/{change.name}" if change else "",
                change.user[:_MAX_USER] if change else "",
                response.reason,
                response.audit.get("version", ""),
                round(seconds * 1000, 3),
            )
        )

    def flush(self) -> None:
        """Count and write what was noted since."""
        lines, self._lines = self._lines, []
        for line in lines:
            self._metrics.decided(
                line.webhook, line.operation, line.message, line.reason, line.user, line.milliseconds / 1000
            )
        if not logger.isEnabledFor(logging.INFO):
            return
        if sys.stderr.isatty():
            for line in lines:
                fields = msgspec.structs.asdict(line)
                logger.info(line.message, extra={key: fields[key] for key in _SHOWN})
            return
        sys.stderr.buffer.write(_encoder.encode_lines(lines))
        sys.stderr.buffer.flush()


_SHOWN = _Line.__struct_fields__[4:]
_encoder = msgspec.json.Encoder()
