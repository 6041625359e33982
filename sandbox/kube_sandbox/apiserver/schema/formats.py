"""The string formats in schemas. Unknown formats are not checked, like in the real server."""

import base64
import binascii
import datetime
import ipaddress
import re
import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

_HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)?")
_DURATION = re.compile(r"-?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h|d|w) ?)+|0")


def fits(format_: str, value: str) -> bool:
    """Whether a text matches a format. Every text matches an unknown format."""
    check = _CHECKS.get(format_)
    if check is None:
        return True
    try:
        return check(value)
    except (ValueError, binascii.Error):
        return False


def _date_time(value: str) -> bool:
    if not _DATE_TIME.fullmatch(value):
        return False
    datetime.datetime.fromisoformat(value[:19].replace("t", "T").replace(" ", "T"))
    return True


def _date(value: str) -> bool:
    datetime.datetime.strptime(value, "%Y-%m-%d")
    return len(value) == 10


def _uri(value: str) -> bool:
    parts = urlsplit(value)
    return bool(parts.scheme or value.startswith("/"))


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "date": _date,
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "email": lambda value: re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None,
    "hostname": lambda value: len(value) <= 255 and _HOSTNAME.fullmatch(value) is not None,
    "ipv4": lambda value: bool(ipaddress.IPv4Address(value)) or True,
    "ipv6": lambda value: bool(ipaddress.IPv6Address(value)) or True,
    "cidr": lambda value: "/" in value and (bool(ipaddress.ip_interface(value)) or True),
    "byte": lambda value: base64.b64decode(value, validate=True) is not None,
    "uuid": lambda value: bool(uuid.UUID(value)),
    "uri": _uri,
}
