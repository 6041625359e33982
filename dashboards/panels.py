"""Panels in Grafana's JSON, without their ids and positions, which `board` adds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Object = dict[str, Any]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

GREEN, ORANGE, RED, BLUE = "green", "orange", "red", "blue"

Steps = Sequence[tuple[float | None, str]]
"""Thresholds: the value from which on a colour is used. The first one has the value None and is the base colour."""

PLAIN: Steps = ((None, GREEN),)
NEVER: Steps = ((None, GREEN), (0.5, RED))
"""For events that should never happen. The threshold is 0.5, because increase() may return a little less than 1."""
SELDOM: Steps = ((None, GREEN), (0.5, ORANGE))
"""For events that should happen seldom."""


DOCS = "https://github.com/traas-stack/altershield/blob/main/docs/"
"""The address of the pages to which panels link. The chart replaces the address of the runbooks by
`prometheusRule.runbookUrl`."""


def linked(panel: Object, *alerts: str) -> Object:
    """The panel with links to the runbooks of these alerts, without their prefix `AlterShield`."""
    names = [f"AlterShield{alert}" for alert in alerts]
    return {
        **panel,
        "links": [
            {"title": f"Runbook: {name}", "url": f"{DOCS}runbooks/{name}.md", "targetBlank": True} for name in names
        ],
    }


class Query(NamedTuple):
    """PromQL, and a template for the names of its series in the legend."""

    expr: str
    legend: str = ""


def stat(title: str, description: str, expr: str, *, unit: str = "none", steps: Steps = PLAIN) -> Object:
    """The current value of one series. Without a unit it is a count, and shown without decimals."""
    panel = _panel("stat", title, description, [Query(expr)], unit, steps, instant=True)
    defaults = panel["fieldConfig"]["defaults"]
    nothing = {"match": "nan", "result": {"text": "–", "index": 0}}  # the quantile of an empty histogram
    defaults["mappings"] = [{"type": "special", "options": nothing}]
    if unit == "none":
        defaults["decimals"] = 0  # increase() extrapolates to fractions
    panel["options"] = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "value",
    }
    return panel


def graph(
    title: str, description: str, *queries: Query, unit: str = "none", steps: Steps = PLAIN, stacked: bool = False
) -> Object:
    """Lines over time, with thresholds as dashed lines. With `stacked`, areas on top of each other."""
    panel = _panel("timeseries", title, description, queries, unit, steps)
    defaults = panel["fieldConfig"]["defaults"]
    defaults["min"] = 0
    defaults["color"] = {"mode": "palette-classic"}
    defaults["custom"] = {
        "drawStyle": "line",
        "fillOpacity": 30 if stacked else 8,
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if len(steps) > 1 else "off"},
    }
    panel["options"] = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel


def heatmap(title: str, description: str, query: Query, *, unit: str) -> Object:
    """A histogram over time. The query returns one series per bucket, with the label `le`."""
    panel = _panel("heatmap", title, description, [query], unit, PLAIN)
    panel["targets"][0]["format"] = "heatmap"
    panel["options"] = {
        "calculate": False,
        "cellGap": 1,
        "cellValues": {"unit": "none"},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange"},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {
            "show": True,
            "mode": "single",
            "yHistogram": False,
        },  # Grafana reads `show` up to 10.2, `mode` later
        "yAxis": {"axisPlacement": "left", "unit": unit, "reverse": False},
    }
    return panel


def timeline(title: str, description: str, *queries: Query, values: Mapping[str, tuple[str, str]]) -> Object:
    """The states of each series over time. `values` maps a value to its text and colour."""
    panel = _panel("state-timeline", title, description, queries, "none", PLAIN)
    panel["fieldConfig"]["defaults"]["mappings"] = [
        {
            "type": "value",
            "options": {
                value: {"text": text, "color": color, "index": index}
                for index, (value, (text, color)) in enumerate(values.items())
            },
        }
    ]
    panel["fieldConfig"]["defaults"]["custom"] = {"fillOpacity": 70, "lineWidth": 0}
    panel["options"] = {
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
        "mergeValues": True,
        "rowHeight": 0.9,
        "showValue": "auto",
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return panel


class Column(NamedTuple):
    """A column of a table. `source` is a label, `Value #A` for the value of the first query, or `Value #B` for the
    value of the second query. In a table with only one query, the source of its value is `Value`."""

    source: str
    title: str
    unit: str = "none"
    steps: Steps = ()
    link: tuple[str, str] = ("", "")
    """Title and URL of a link in each cell. `${__data.fields.TITLE}` is the value of another column of the row."""
    colors: Mapping[str, str] = {}
    """The colours of texts."""


def table(title: str, description: str, queries: Sequence[Query], columns: Sequence[Column]) -> Object:
    """A table with one row per set of labels, sorted by the last column in descending order."""
    panel = _panel("table", title, description, queries, "none", PLAIN, instant=True)
    for target in panel["targets"]:
        target["format"] = "table"
    for column in columns:
        properties: list[Object] = [{"id": "unit", "value": column.unit}] if column.unit != "none" else []
        if column.unit == "short":
            properties.append({"id": "decimals", "value": 0})
        if column.steps:
            properties.append({"id": "thresholds", "value": _thresholds(column.steps)})
            properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
        if column.colors:
            options = {text: {"color": color, "index": i} for i, (text, color) in enumerate(column.colors.items())}
            properties.append({"id": "mappings", "value": [{"type": "value", "options": options}]})
            properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
        if column.link[1]:
            link = {"title": column.link[0], "url": column.link[1], "targetBlank": True}
            properties.append({"id": "links", "value": [link]})
        if properties:
            matcher = {"id": "byName", "options": column.title}
            panel["fieldConfig"]["overrides"].append({"matcher": matcher, "properties": properties})
    panel["options"] = {
        "cellHeight": "sm",
        "footer": {"show": False, "reducer": ["sum"], "countRows": False},
        "showHeader": True,
        "sortBy": [{"displayName": columns[-1].title, "desc": True}],
    }
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "indexByName": {column.source: index for index, column in enumerate(columns)},
                "renameByName": {column.source: column.title for column in columns},
            },
        },
    ]
    return panel


def _panel(
    type_: str,
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    steps: Steps,
    *,
    instant: bool = False,
) -> Object:
    return {
        "type": type_,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "pluginVersion": "10.0.0",
        "targets": [
            {
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": query.expr,
                "instant": instant,
                "range": not instant,
                "legendFormat": query.legend or "__auto",
                "refId": chr(ord("A") + index),
            }
            for index, query in enumerate(queries)
        ],
        "fieldConfig": {
            "defaults": {
                "color": {"mode": "thresholds"},
                "mappings": [],
                "thresholds": _thresholds(steps),
                "unit": unit,
            },
            "overrides": [],
        },
        "options": {},
    }


def _thresholds(steps: Steps) -> Object:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in steps]}
