"""Logs on stderr: one JSON object per line, or readable text if stderr is a terminal.

    logger.info("released again", extra={"namespace": "shop", "workload": "sleep"})

writes `{"time": ..., "level": "info", "logger": ..., "message": "released again", "namespace": "shop", ...}`.
A line that is written during a reconcile also has `"reconcile"`, the id of this reconcile.
Do not log secrets. Text that looks like a secret is replaced as a second line of defense.
"""

import datetime
import json
import logging
import re
import sys
import traceback
from contextvars import ContextVar
from typing import Any

import orjson

from kube_base.errors import UsageError

RECONCILE: ContextVar[str] = ContextVar("RECONCILE", default="")
"""The id of the reconcile that runs in this context; empty outside of reconciles. Tasks that a reconcile starts inherit
it."""

_LEVELS = ("debug", "info", "warning", "error")
_COMMON = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}  # the attributes of every record
_MAX_TEXT = 16_384  # characters of one field

# Bearer tokens, passwords, JSON Web Tokens, private keys. No match contains a quotation mark, so JSON stays valid.
_SECRETS = re.compile(
    r"([Bb]earer |[Bb]asic )[\w.~+/=-]{8,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[^\"]*"
)
_SIGNS = (b"earer ", b"asic ", b"eyJ", b"PRIVATE KEY")  # every match of _SECRETS contains one of them
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def configure(level: str = "info") -> None:
    """Log to stderr from `level` (debug, info, warning, error) on. Call this once. UsageError: the level is unknown."""
    if level.lower() not in _LEVELS:
        raise UsageError(f"the log level {level!r} is not one of {', '.join(_LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Text() if sys.stderr.isatty() else _Json())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    # this library also raises or returns each error that it logs, and our code reports the error
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_MAX_TEXT],
        }
        return _redacted(
            _dumps(line | _fields(record) | line)
        )  # the first `line` gives the order, the last one the values


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        stack = _redacted(str(fields.pop("stack", ""))).splitlines()
        shown = [f"{key}={value if isinstance(value, str) else _dumps(value)}" for key, value in fields.items()]
        line = " ".join(
            [_time(record), f"{record.levelname:<7}", f"{record.name}:", record.getMessage()[:_MAX_TEXT], *shown]
        )
        return "\n    ".join(_escaped(part) for part in (_redacted(line), *stack))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The caller's `extra`, the id of the reconcile, and an exception as `error` and `stack`."""
    fields = {
        key: value[:_MAX_TEXT] if isinstance(value, str) else value
        for key, value in record.__dict__.items()
        if key not in _COMMON
    }
    reconcile = RECONCILE.get()
    if reconcile:
        fields["reconcile"] = reconcile
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields["error"] = f"{type(error).__name__}: {error}"[:_MAX_TEXT]
        fields["stack"] = "".join(traceback.format_exception(error))[-_MAX_TEXT:]
    return fields


def _dumps(value: object) -> str:
    try:
        return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:  # integers of more than 64 bits, lone surrogates
        return json.dumps(value, default=repr, skipkeys=True)


def redacted(lines: bytes) -> bytes:
    """Encoded lines without text that looks like a secret."""
    if not any(sign in lines for sign in _SIGNS):
        return lines
    return _redacted(lines.decode(errors="replace")).encode()


def _redacted(text: str) -> str:
    return _SECRETS.sub(r"\1REDACTED", text)


def _escaped(text: str) -> str:
    """The text without control characters, which could move the cursor or begin a new line."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
