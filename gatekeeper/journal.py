"""What became of the requests: counted, and told in the log with one line each."""

import asyncio
import datetime
import logging
import sys
import time
from typing import NamedTuple

import orjson

from gatekeeper.metrics import Metrics
from gatekeeper.review import Response, Review

_log = logging.getLogger("gatekeeper")

_FLUSH_SECONDS = 0.1
_MAX_USER = 253


class _Entry(NamedTuple):
    """Plain texts and numbers only, so that what waits costs the garbage collector nothing."""

    time: float
    webhook: str
    operation: str
    namespace: str
    deployment: str
    user: str
    decision: str
    reason: str
    version: str
    seconds: float


class Journal:
    """Decisions are noted as they fall, and counted and written some at a time: done at once, each by itself, that
    takes longer than to decide. A line tells who, what and why, never what is in the object."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._entries: list[_Entry] = []

    def note(self, webhook: str, review: Review, response: Response, seconds: float) -> None:
        """Note a decision that took `seconds`. To be called in the event loop."""
        if not self._entries:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        change = review.change
        namespace, name, user = (change.namespace, change.name, change.user) if change else ("", "", "")
        self._entries.append(
            _Entry(
                time.time(),
                webhook,
                review.operation,
                namespace,
                name,
                user[:_MAX_USER],
                response.decision,
                response.reason,
                response.audit.get("version", ""),
                seconds,
            )
        )

    def flush(self) -> None:
        """Count and write what was noted since."""
        entries, self._entries = self._entries, []
        for entry in entries:
            self._metrics.decided(entry.webhook, entry.operation, entry.decision, entry.reason, entry.seconds)
        if not _log.isEnabledFor(logging.INFO):
            return
        if sys.stderr.isatty():
            for entry in entries:
                _log.info(entry.decision, extra=_fields(entry))
            return
        sys.stderr.buffer.writelines(map(_line, entries))
        sys.stderr.buffer.flush()


def _line(entry: _Entry) -> bytes:
    """In the form of altershield.logs, without its cost."""
    head = {
        "time": datetime.datetime.fromtimestamp(entry.time, datetime.UTC),
        "level": "info",
        "logger": _log.name,
        "message": entry.decision,
    }
    return orjson.dumps(head | _fields(entry), option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)


def _fields(entry: _Entry) -> dict[str, object]:
    return {
        "webhook": entry.webhook,
        "operation": entry.operation,
        "namespace": entry.namespace,
        "deployment": entry.deployment,
        "user": entry.user,
        "reason": entry.reason,
        "version": entry.version,
        "milliseconds": round(entry.seconds * 1000, 3),
    }
