"""Specs of ReleaseWindows, and times, for tests."""

import datetime
import zoneinfo
from typing import Any

import msgspec

from altershield.api.gates.windows import ReleaseWindowSpec
from reconciler.gates.terms import DAY, Span

SATURDAY = datetime.datetime(2026, 11, 28, tzinfo=datetime.UTC)


def spec(*schedules: dict[str, Any], zone: str = "UTC", **more: Any) -> ReleaseWindowSpec:
    """A Deny with these schedules."""
    return msgspec.convert({"type": "Deny", "timeZone": zone, "schedules": list(schedules), **more}, ReleaseWindowSpec)


def at(text: str, zone: str = "UTC") -> int:
    """The Unix second of a time such as `2026-11-28 18:00` in a zone. A time that comes twice is the first one."""
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())


def shown(spans: list[Span], zone: str = "UTC") -> list[str]:
    """The times with their offset, as `11-28 00:00+08:00 > 11-30 00:00+08:00`."""
    return [" > ".join(_shown(each, zone) for each in span) for span in spans]


def _shown(second: int, zone: str) -> str:
    local = datetime.datetime.fromtimestamp(second, zoneinfo.ZoneInfo(zone))
    return local.isoformat(" ", "minutes")[5:]


def calendar(*events: str, head: str = "") -> str:
    """A calendar with these events. Each is the lines between BEGIN and END, separated by spaces."""
    lines = "".join(
        f"BEGIN:VEVENT\r\nUID:{number}\r\n{_lines(each)}END:VEVENT\r\n" for number, each in enumerate(events)
    )
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{_lines(head)}{lines}END:VCALENDAR\r\n"


def _lines(text: str) -> str:
    return "".join(f"{line}\r\n" for line in text.split())


FROM_FILE = {"calendar": {"configMap": "holidays", "key": "cn.ics"}}
"""A schedule with the calendar `FILE`."""
FILE = "holidays/cn.ics"

__all__ = ["DAY", "FILE", "FROM_FILE", "SATURDAY", "at", "calendar", "shown", "spec"]
