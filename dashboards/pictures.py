"""Draws a dashboard as SVG, from its JSON and from query results of a Prometheus.

It does not imitate Grafana in detail: it draws each panel simply, with the queries, units, thresholds and names of the
JSON. `python -m tests.monitoring.pictures` creates the pictures in docs/pictures.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from xml.sax.saxutils import escape

from dashboards.panels import Object
from dashboards.series import Series, numbers, runs, unbroken
from dashboards.shapes import (
    BACKGROUND,
    BORDER,
    COLORS,
    DIM,
    GRID,
    PANEL,
    TEXT,
    Box,
    clock,
    formatted,
    rect,
    text,
    text_width,
    tick_step,
)

_COLUMN, _UNIT, _GAP = 50, 36, 8  # pixels: column width and row height of the dashboard's grid, gap between panels
_PALETTE = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d")
_LEGEND_LINES = 4


class Data(Protocol):
    """Query results for a time range. It replaces Grafana's variables. `start` and `end` are Unix seconds."""

    start: float
    end: float

    def between(self, query: str) -> list[Series]:
        """The result of a range query from `start` to `end`."""

    def now(self, query: str) -> list[Series]:
        """The result of an instant query at `end`."""


def picture(board: Object, data: Data) -> str:
    """The dashboard as SVG."""
    width = 24 * _COLUMN + _GAP
    height = max(_box(panel).y + _box(panel).height for panel in board["panels"]) + _GAP
    parts = [text(_GAP, 26, board["title"], 18, weight=600)]
    for panel in board["panels"]:
        parts += _panel(panel, _box(panel), data)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f"font-family=\"Inter, 'DejaVu Sans', Arial, sans-serif\">\n<title>{escape(board['title'])}</title>\n"
        f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _box(panel: Object) -> Box:
    grid = panel["gridPos"]
    return Box(_GAP + grid["x"] * _COLUMN, 40 + grid["y"] * _UNIT, grid["w"] * _COLUMN - _GAP, grid["h"] * _UNIT - _GAP)


def _panel(panel: Object, box: Box, data: Data) -> Iterator[str]:
    if panel["type"] == "row":
        yield text(box.x, box.y + 19, panel["title"], 14, weight=600)
        return
    yield rect(box, PANEL, f'stroke="{BORDER}" rx="3"')
    yield text(box.x + 8, box.y + 18, panel["title"], 12.5, weight=600, width=box.width - 16)
    inner = Box(box.x + 8, box.y + 28, box.width - 16, box.height - 34)
    drawn = list(_TYPES[panel["type"]](panel, inner, data))
    yield from drawn or [text(box.x + box.width / 2, box.y + box.height / 2 + 8, "No data", 13, DIM, "middle")]


def _stat(panel: Object, box: Box, data: Data) -> Iterator[str]:
    found = data.now(panel["targets"][0]["expr"])
    if found:
        defaults = panel["fieldConfig"]["defaults"]
        shown = formatted(found[0].last, defaults["unit"], defaults.get("decimals"))
        color = _by_threshold(found[0].last, defaults["thresholds"])
        yield text(box.x + box.width / 2, box.y + box.height / 2 + 14, shown, 36, color, "middle", 600)


def _graph(panel: Object, box: Box, data: Data) -> Iterator[str]:
    defaults = panel["fieldConfig"]["defaults"]
    unit, custom = defaults["unit"], defaults["custom"]
    lines = list(_named(panel, data))
    if not lines:
        return
    stacked = custom["stacking"]["mode"] == "normal"
    listed = min(len(lines), _LEGEND_LINES)
    plot = Box(box.x + 52, box.y + 4, box.width - 56, box.height - 42 - 15 * listed)
    below: dict[float, float] = {}
    shapes, most = [], 0.0
    for _, series in lines:
        base = [(at, below.get(at, 0.0)) for at, _ in series.samples]
        values = [(at, value + below.get(at, 0.0)) for at, value in series.samples]
        if stacked:
            below.update((at, value) for at, value in values if not math.isnan(value))
        shapes.append((values, base))
        most = max([most, *(value for _, value in values if not math.isnan(value))])
    step = tick_step(most or 1)
    top = step * math.ceil((most or 1) / step)

    def place(at: float, value: float) -> str:
        return f"{_across(at, plot, data):.1f},{plot.y + plot.height * (1 - value / top):.1f}"

    yield from _axes(
        plot, data, [(index * step / top, formatted(index * step, unit)) for index in range(round(top / step) + 1)]
    )
    if custom["thresholdsStyle"]["mode"] == "dashed":
        for threshold in defaults["thresholds"]["steps"][1:]:
            if threshold["value"] <= top:
                start, end = place(data.start, threshold["value"]), place(data.end, threshold["value"])
                color = COLORS[threshold["color"]]
                yield f'<polyline points="{start} {end}" stroke="{color}" stroke-dasharray="6 4"/>'
    for index, (values, base) in enumerate(shapes):
        color = _PALETTE[index % len(_PALETTE)]
        for part in unbroken(values):
            points = " ".join(place(*each) for each in part)
            if stacked:
                floor = " ".join(place(*each) for each in reversed(base) if part[0][0] <= each[0] <= part[-1][0])
                yield f'<polygon points="{points} {floor}" fill="{color}" fill-opacity="0.3"/>'
            yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.3"/>'
    yield from _legend(lines, unit, Box(box.x, plot.y + plot.height + 34, box.width, 0))


def _legend(lines: Sequence[tuple[str, Series]], unit: str, box: Box) -> Iterator[str]:
    """The series with the largest values, as many as fit."""
    last, most = box.x + box.width - 80, box.x + box.width - 4
    yield text(last, box.y, "Last", 10, COLORS["blue"], "end")
    yield text(most, box.y, "Max", 10, COLORS["blue"], "end")
    largest = {index: max(numbers(series), default=-1.0) for index, (_, series) in enumerate(lines)}
    listed = sorted(largest, key=lambda index: -largest[index])
    if len(listed) > _LEGEND_LINES:
        listed = listed[: _LEGEND_LINES - 1]
        yield text(box.x + 16, box.y + 15 * _LEGEND_LINES, f"and {len(lines) - len(listed)} more", 11, DIM)
    for place, index in enumerate(listed, 1):
        name, series = lines[index]
        y = box.y + 15 * place
        yield rect(Box(box.x, y - 5, 10, 3), _PALETTE[index % len(_PALETTE)])
        yield text(box.x + 16, y, name, 11, width=box.width - 170)
        values = numbers(series) or [math.nan]
        yield text(last, y, formatted(values[-1], unit), 11, anchor="end")
        yield text(most, y, formatted(max(values), unit), 11, anchor="end")


def _heatmap(panel: Object, box: Box, data: Data) -> Iterator[str]:
    buckets = sorted(data.between(panel["targets"][0]["expr"]), key=lambda each: float(each.labels["le"]))
    counts: list[tuple[float, dict[float, float]]] = []
    below: dict[float, float] = {}
    for bucket in buckets:  # a bucket includes all smaller buckets
        values = dict(bucket.samples)
        counts.append((float(bucket.labels["le"]), {at: value - below.get(at, 0.0) for at, value in values.items()}))
        below = values
    filled = [index for index, (_, row) in enumerate(counts) if any(value > 0 for value in row.values())]
    if not filled:
        return
    counts = counts[max(0, filled[0] - 1) : filled[-1] + 2]
    most = max(max(row.values()) for _, row in counts)
    plot = Box(box.x + 52, box.y + 4, box.width - 56, box.height - 26)
    height, unit = plot.height / len(counts), panel["options"]["yAxis"]["unit"]
    yield from _axes(plot, data, [((i + 0.5) / len(counts), formatted(le, unit)) for i, (le, _) in enumerate(counts)])
    times = [at for at, _ in buckets[0].samples]
    width = plot.width * (times[1] - times[0]) / (data.end - data.start) if len(times) > 1 else 4
    for index, (_, row) in enumerate(counts):
        for at, value in row.items():
            if value > 0:
                y = plot.y + plot.height - (index + 1) * height
                opacity = 0.15 + 0.85 * math.sqrt(value / most)
                cell = Box(_across(at, plot, data) - width, y, width, height - 1)
                yield rect(cell, "#ff9830", f'fill-opacity="{opacity:.2f}"')


def _timeline(panel: Object, box: Box, data: Data) -> Iterator[str]:
    lines = list(_named(panel, data))
    mapping = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    left = min(9 + text_width(max((name for name, _ in lines), key=len, default=""), 10.5), 0.55 * box.width)
    plot = Box(box.x + left, box.y + 4, box.width - left - 4, box.height - 26)
    if lines:
        yield from _axes(plot, data, [])
    for index, (name, series) in enumerate(lines):
        height = plot.height / len(lines)
        y = plot.y + index * height
        yield text(plot.x - 8, y + height / 2 + 4, name, 10.5, anchor="end", width=left - 8)
        for part in runs(series.samples):
            (start, value), (end, _) = part[0], part[-1]
            state = mapping[f"{value:g}"]
            begin, stop = _across(start, plot, data), _across(end, plot, data)
            bar = Box(begin, y + 2, max(stop - begin, 2), height - 4)
            yield rect(bar, COLORS[state["color"]], 'fill-opacity="0.7"')
            yield text(begin + 6, y + height / 2 + 4, state["text"], 10.5, "#ffffff", width=stop - begin - 8)


def _table(panel: Object, box: Box, data: Data) -> Iterator[str]:
    organized = panel["transformations"][1]["options"]
    sources = sorted(organized["indexByName"], key=organized["indexByName"].__getitem__)
    titles = [organized["renameByName"][source] for source in sources]
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for target in panel["targets"]:
        value = "Value" if len(panel["targets"]) == 1 else f"Value #{target['refId']}"
        for series in data.now(target["expr"]):
            key = tuple(series.labels.get(source, "") for source in sources)
            rows.setdefault(key, dict(series.labels))[value] = series.last
    overrides = {each["matcher"]["options"]: each["properties"] for each in panel["fieldConfig"]["overrides"]}
    lines = [[(title, COLORS["blue"]) for title in titles]]
    for row in sorted(rows.values(), key=lambda each: -each[sources[-1]])[: int((box.height - 20) // 21)]:
        lines.append(
            [
                _cell(row.get(source, ""), overrides.get(title, ()))
                for source, title in zip(sources, titles, strict=True)
            ]
        )
    longest = [max(len(value) for value, _ in column) for column in zip(*lines, strict=True)]
    lengths = next(
        fitting for most in range(40, 0, -1) if _fits(fitting := [min(each, most) + 2 for each in longest], box)
    )
    for index, line in enumerate(lines if rows else ()):
        y = box.y + 12 + 21 * index
        if index:
            yield f'<path d="M{box.x} {y - 15}h{box.width}" stroke="{GRID}"/>'
        for column, (value, color) in enumerate(line):
            x = box.x + box.width * sum(lengths[:column]) / sum(lengths)
            yield text(x, y, value, 11, color, width=box.width * lengths[column] / sum(lengths) - 6)


def _fits(lengths: Sequence[int], box: Box) -> bool:
    """Whether columns of so many characters fit. If not, the longest texts are cut first."""
    return text_width(" " * sum(lengths), 11) <= box.width


def _cell(value: str | float, properties: Sequence[Object]) -> tuple[str, str]:
    """The text and the colour of a cell."""
    found = {each["id"]: each["value"] for each in properties}
    if isinstance(value, str):
        colors = found["mappings"][0]["options"] if "mappings" in found else {}
        return value, COLORS[colors[value]["color"]] if value in colors else TEXT
    color = _by_threshold(value, found["thresholds"]) if "thresholds" in found else TEXT
    return formatted(value, found.get("unit", "none"), found.get("decimals")), color


_TYPES: dict[str, Callable[[Object, Box, Data], Iterator[str]]] = {
    "stat": _stat,
    "timeseries": _graph,
    "heatmap": _heatmap,
    "state-timeline": _timeline,
    "table": _table,
}


def _by_threshold(value: float, thresholds: Object) -> str:
    reached = [step for step in thresholds["steps"] if step["value"] is None or value >= step["value"]]
    return COLORS[reached[-1]["color"]]


def _named(panel: Object, data: Data) -> Iterator[tuple[str, Series]]:
    """The series of all queries of a panel, with their names in the legend."""
    for target in panel["targets"]:
        for series in data.between(target["expr"]):
            name = target["legendFormat"]
            for label in re.findall(r"\{\{(\w+)\}\}", name):
                name = name.replace(f"{{{{{label}}}}}", series.labels.get(label, ""))
            yield name.strip(), series


def _axes(plot: Box, data: Data, ticks: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Grid lines with labels for `ticks` (position between 0 and 1, text), and times below the plot."""
    for share, shown in ticks:
        y = plot.y + plot.height * (1 - share)
        yield f'<path d="M{plot.x:.0f} {y:.1f}h{plot.width:.0f}" stroke="{GRID}"/>'
        yield text(plot.x - 6, y + 3.5, shown, 10, DIM, "end")
    count = 5 if plot.width > 300 else 3
    for index in range(count):
        at = data.start + (data.end - data.start) * (index + 0.5) / count
        shown = clock(at)
        yield text(_across(at, plot, data), plot.y + plot.height + 15, shown, 10, DIM, "middle")


def _across(at: float, plot: Box, data: Data) -> float:
    return plot.x + plot.width * (at - data.start) / (data.end - data.start)
