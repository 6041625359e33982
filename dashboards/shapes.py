"""SVG elements and formatted values for the pictures of the dashboards."""

import math
from datetime import UTC, datetime
from typing import NamedTuple
from xml.sax.saxutils import escape

BACKGROUND, PANEL, BORDER, TEXT, DIM, GRID = "#111217", "#181b1f", "#2c3038", "#ccccdc", "#8e8e9c", "#2a2e35"
COLORS = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2", "text": "#8e8e9c"}
"""Grafana's names of colours, and their values."""

_CHAR = 0.61  # mean width of a character, relative to the font size
_SUFFIXES = {"reqps": " req/s", "cpm": " c/m", "ops": " ops/s", "wps": " wr/s", "s": " s"}


class Box(NamedTuple):
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float


def rect(box: Box, fill: str, more: str = "") -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect {place} fill="{fill}" {more}/>'


def text_width(content: str, size: float) -> float:
    """About how many pixels a line of text takes."""
    return len(content) * size * _CHAR


def text(
    x: float, y: float, content: str, size: float, fill: str = TEXT, anchor: str = "", weight: int = 0, width: float = 0
) -> str:
    """A line of text. It is cut if it is longer than `width` pixels. With `width` 0 it is not cut."""
    fitting = int(width / (size * _CHAR)) if width else len(content)
    shown = content if len(content) <= fitting else content[: fitting - 1] + "…" if fitting > 1 else ""
    more = (f' text-anchor="{anchor}"' if anchor else "") + (f' font-weight="{weight}"' if weight else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{more}>{escape(shown)}</text>'


def formatted(value: float, unit: str, decimals: int | None = None) -> str:
    """The value with its unit. `unit` is Grafana's name of a unit."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "+Inf"
    if unit == "dateTimeAsIso":
        return clock(value / 1000)
    if unit == "percentunit":
        return f"{value * 100:.3g}%"
    if unit == "bytes":
        power = max(0, min(3, int(math.log(abs(value) or 1, 1024))))
        return f"{value / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
    if unit == "s" and value:
        limits = ((1e-3, 1e-6, "µs"), (1, 1e-3, "ms"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "hours"))
        factor, name = next(((by, name) for limit, by, name in limits if abs(value) < limit), (86400, "days"))
        return f"{value / factor:.3g} {name}"
    number = f"{value:.{decimals}f}" if decimals is not None else f"{value:.3g}"
    return number + _SUFFIXES.get(unit, "")


def clock(at: float) -> str:
    """The time of day (UTC) of Unix seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def tick_step(most: float) -> float:
    """A round step that gives about four ticks between 0 and `most`."""
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
