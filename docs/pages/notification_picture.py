"""The picture of notifications as people see them: a message, a card and an alert, drawn from their bodies."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from docs.pages.notifications import body
from reconciler.receivers.vocabulary import Type

_COLUMNS = 88  # characters of a line
_LINE, _MARGIN, _WIDTH = 20, 24, 780
_COLORS = {"attention": "#c4314b", "error": "#b91c1c"}
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
  font-family="system-ui, sans-serif" font-size="14">
  <title>A notification in Slack, in Microsoft Teams and in PagerDuty</title>
  <!-- Written by `make reference` from the code; changes belong there. -->
  <rect width="{width}" height="{height}" fill="#f1f5f9"/>
"""


class _Line(NamedTuple):
    text: str
    color: str = "#334155"
    bold: bool = False


def picture() -> str:
    cards = (
        ("Slack", "#4a154b", list(_slack(json.loads(body(Type.SLACK))))),
        ("Microsoft Teams", "#4b53bc", list(_teams(json.loads(body(Type.TEAMS))))),
        ("PagerDuty", "#048a24", list(_pagerduty(json.loads(body(Type.PAGERDUTY))))),
    )
    drawn = list[str]()
    top = _MARGIN
    for title, color, lines in cards:
        height = _LINE * (len(lines) + 1) + _MARGIN
        drawn += _card(title, color, lines, top, height)
        top += height + _MARGIN
    return _HEAD.format(width=_WIDTH, height=top) + "".join(f"  {each}\n" for each in drawn) + "</svg>\n"


def _card(title: str, color: str, lines: list[_Line], top: int, height: int) -> Iterator[str]:
    width = _WIDTH - 2 * _MARGIN
    yield f'<rect x="{_MARGIN}" y="{top}" width="{width}" height="{height}" rx="6" fill="#ffffff" stroke="#cbd5e1"/>'
    yield f'<rect x="{_MARGIN}" y="{top}" width="6" height="{height}" rx="3" fill="{color}"/>'
    for number, line in enumerate((_Line(title, color, bold=True), *lines), 1):
        weight = ' font-weight="600"' if line.bold else ""
        at = f'x="{_MARGIN + 20}" y="{top + number * _LINE + 6}"'
        yield f'<text {at} fill="{line.color}"{weight}>{escape(line.text)}</text>'


def _slack(message: dict[str, Any]) -> Iterator[_Line]:
    for line in message["text"].splitlines():
        yield from _wrapped(line)


def _teams(message: dict[str, Any]) -> Iterator[_Line]:
    for block in message["attachments"][0]["content"]["body"]:
        if block["type"] == "TextBlock":
            color = _COLORS.get(block.get("color", ""), _Line("").color)
            yield from _wrapped(block["text"], color, bold=block.get("weight") == "bolder")
        for fact in block.get("facts", ()):
            yield from _wrapped(f"{fact['title']}: {fact['value']}")


def _pagerduty(event: dict[str, Any]) -> Iterator[_Line]:
    payload = event["payload"]
    yield from _wrapped(payload["summary"], bold=True)
    for name in ("severity", "source", "component", "group", "class"):
        yield from _wrapped(f"{name}: {payload[name]}", _COLORS.get(payload[name], _Line("").color))
    for name, value in payload["custom_details"].items():
        if name != "text":  # the summary and the details again
            yield from _wrapped(f"{name}: {value}")


def _wrapped(text: str, color: str = "#334155", *, bold: bool = False) -> Iterator[_Line]:
    for line in textwrap.wrap(text, _COLUMNS - 8 * bold):
        yield _Line(line, color, bold)
