"""Logs on stderr: one JSON object per line for machines, readable text where a person sits at the terminal.

    logger.info("released again", extra={"namespace": "shop", "workload": "sleep"})

gives `{"time": ..., "level": "info", "logger": ..., "message": "released again", "namespace": "shop", ...}`.
Secrets do not belong into logs; what looks like one is taken out all the same.
"""

import datetime
import json
import logging
import re
import sys
import traceback
from typing import Any

import orjson

from altershield.errors import UsageError

_LEVELS = ("debug", "info", "warning", "error")
_COMMON = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}  # what every record carries
_MAX_TEXT = 16_384  # characters of one field

# Bearer tokens, passwords, JSON Web Tokens, private keys. None reaches past a quotation mark: JSON stays JSON.
_SECRETS = re.compile(
    r"([Bb]earer |[Bb]asic )[\w.~+/=-]{8,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[^\"]*"
)
_SIGNS = (b"earer ", b"asic ", b"eyJ", b"PRIVATE KEY")  # one of them is in every secret that _SECRETS finds
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def configure(level: str = "info") -> None:
    """Log to stderr from `level` (debug, info, warning, error) on. Once, when the process starts."""
    if level.lower() not in _LEVELS:
        raise UsageError(f"the log level {level!r} is none of {', '.join(_LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Text() if sys.stderr.isatty() else _Json())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    # Whatever it reports, it also raises or returns to us, and we say it in our words.
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_MAX_TEXT],
        }
        return _redacted(_dumps(line | _fields(record) | line))  # the order of the first, the values of the last


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
    """What the caller gave as `extra`, and an exception as `error` and `stack`."""
    fields = {
        key: value[:_MAX_TEXT] if isinstance(value, str) else value
        for key, value in record.__dict__.items()
        if key not in _COMMON
    }
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields["error"] = f"{type(error).__name__}: {error}"[:_MAX_TEXT]
        fields["stack"] = "".join(traceback.format_exception(error))[-_MAX_TEXT:]
    return fields


def _dumps(value: object) -> str:
    try:
        return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:  # numbers past 64 bits, half surrogates
        return json.dumps(value, default=repr, skipkeys=True)


def redacted(lines: bytes) -> bytes:
    """Lines that were encoded elsewhere, without what looks like a secret."""
    if not any(sign in lines for sign in _SIGNS):
        return lines
    return _redacted(lines.decode(errors="replace")).encode()


def _redacted(text: str) -> str:
    return _SECRETS.sub(r"\1REDACTED", text)


def _escaped(text: str) -> str:
    """No text may move the cursor or begin a line of its own."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
