"""A dashboard in Grafana's JSON: rows of panels, variables, and links to the other dashboards."""

from collections.abc import Sequence
from typing import NamedTuple

from dashboards.panels import DATASOURCE, Object, linked
from dashboards.runbooks import RUNBOOKS

_TAG = "altershield"
_COLUMNS = 24
_SCHEMA = 38  # schema version of Grafana 10.0; newer versions of Grafana migrate it when they load the dashboard


class Row(NamedTuple):
    """A titled row of `lines` of panels. The panels of a line have the same width."""

    title: str
    height: int
    lines: Sequence[Sequence[Object]]


def values_of(name: str, label: str, of: str, description: str, values: str = "namespace") -> Object:
    """A variable with the values of the label `values` of the metric `of`. By default, all values are selected. Then
    the variable is `.*`, so that series without the label are selected too."""
    query = f"label_values({of}, {values})"
    return {
        "name": name,
        "label": label,
        "description": description,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "options": [],
        "regex": "",
        "hide": 0,
        "skipUrlSync": False,
    }


CLUSTER = values_of(
    "cluster",
    "Cluster",
    "altershield_build_info",
    "The cluster, if the Prometheus has series of several clusters, with the label `cluster`.",
    "cluster",
)
SYSTEM = values_of(
    "namespace", "AlterShield's namespace", "altershield_build_info", "The namespace in which AlterShield runs."
)

_DATASOURCE = {
    "name": "datasource",
    "label": "Data source",
    "description": "The Prometheus that scrapes AlterShield.",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
    "options": [],
    "regex": "",
    "refresh": 1,
    "multi": False,
    "includeAll": False,
    "hide": 0,
    "skipUrlSync": False,
}


def board(name: str, description: str, since: str, variables: Sequence[Object], rows: Sequence[Row]) -> Object:
    """The dashboard `AlterShield / {name}`. `since` is the length of its default time range, such as `6h`."""
    return {
        "uid": f"altershield-{name.lower()}",
        "title": f"AlterShield / {name}",
        "description": description,
        "tags": [_TAG],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "liveNow": False,
        "weekStart": "",
        "timezone": "browser",
        "time": {"from": f"now-{since}", "to": "now"},
        "timepicker": {},
        "refresh": "30s",
        "annotations": {"list": []},
        "links": [
            {
                "type": "dashboards",
                "title": "AlterShield",
                "tags": [_TAG],
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
                "icon": "external link",
                "tooltip": "",
                "url": "",
            }
        ],
        "templating": {"list": [_DATASOURCE, CLUSTER, *variables]},
        "panels": _placed(rows),
    }


def _placed(rows: Sequence[Row]) -> list[Object]:
    placed: list[Object] = []
    y = 0
    for row in rows:
        placed.append(_at({"type": "row", "title": row.title, "collapsed": False, "panels": []}, 0, y, _COLUMNS, 1))
        y += 1
        for line in row.lines:
            width = _COLUMNS // len(line)
            placed += [
                _at(linked(panel, *RUNBOOKS.get(panel["title"], ())), index * width, y, width, row.height)
                for index, panel in enumerate(line)
            ]
            y += row.height
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _at(panel: Object, x: int, y: int, width: int, height: int) -> Object:
    return {**panel, "gridPos": {"x": x, "y": y, "w": width, "h": height}}
