"""What became of the requests: counted, and told in the log with one line each."""

import asyncio
import datetime
import logging
import sys
import time

import orjson

from gatekeeper.gates import Decision
from gatekeeper.metrics import Metrics
from gatekeeper.review import Review

_log = logging.getLogger("gatekeeper")

_FLUSH_SECONDS = 0.1
_MAX_USER = 253

_Entry = tuple[float, str, str, str, str, str, Decision, float]


class Journal:
    """Decisions are noted as they fall, and counted and written some at a time: done at once, each by itself, that
    takes longer than to decide. A line tells who, what and why, never what is in the object."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._entries: list[_Entry] = []

    def note(self, webhook: str, review: Review, decision: Decision, seconds: float) -> None:
        """Note a decision that took `seconds`. To be called in the event loop."""
        if not self._entries:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        change = review.change
        namespace, name, user = (change.namespace, change.name, change.user) if change else ("", "", "")
        self._entries.append(
            (time.time(), webhook, review.operation, namespace, name, user[:_MAX_USER], decision, seconds)
        )

    def flush(self) -> None:
        """Count and write what was noted since."""
        entries, self._entries = self._entries, []
        for _, webhook, operation, _, _, _, decision, seconds in entries:
            self._metrics.decided(webhook, operation, decision.decision, decision.reason, seconds)
        if not _log.isEnabledFor(logging.INFO):
            return
        if sys.stderr.isatty():
            for entry in entries:
                _log.info(entry[6].decision, extra=_fields(entry))
            return
        # the form of altershield.logs, without its cost
        lines = (
            orjson.dumps(
                {
                    "time": datetime.datetime.fromtimestamp(entry[0], datetime.UTC),
                    "level": "info",
                    "logger": _log.name,
                    "message": entry[6].decision,
                    **_fields(entry),
                },
                option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE,
            )
            for entry in entries
        )
        sys.stderr.buffer.writelines(lines)
        sys.stderr.buffer.flush()


def _fields(entry: _Entry) -> dict[str, object]:
    _, webhook, operation, namespace, name, user, decision, seconds = entry
    return {
        "webhook": webhook,
        "operation": operation,
        "namespace": namespace,
        "deployment": name,
        "user": user,
        "reason": decision.reason,
        "version": decision.response.audit.get("version", ""),
        "milliseconds": round(seconds * 1000, 3),
    }
