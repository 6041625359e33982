"""A dashboard in Grafana's JSON: rows of panels, variables, and links to the other dashboards."""

from collections.abc import Sequence
from typing import NamedTuple

from dashboards.panels import DATASOURCE, Object

_TAG = "altershield"
_COLUMNS = 24
_SCHEMA = 38  # of Grafana 10.0; newer ones migrate it when they load it


class Row(NamedTuple):
    """Panels side by side, each as wide as the others; as many lines of them as `lines` gives."""

    title: str
    height: int
    lines: Sequence[Sequence[Object]]


def namespaces(name: str, label: str, of: str, description: str) -> Object:
    """A variable: which of the namespaces that the series of the metric `of` have; all, at first. All means any value,
    so that series without a namespace are shown as well."""
    query = f"label_values({of}, namespace)"
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


GATE = namespaces("namespace", "Gate's namespace", "altershield_build_info", "Where AlterShield runs.")

_DATASOURCE = {
    "name": "datasource",
    "label": "Data source",
    "description": "The Prometheus that scrapes the gate.",
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
    """The dashboard AlterShield / `name`, showing what was `since` (as `6h`) until now."""
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
        "templating": {"list": [_DATASOURCE, *variables]},
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
            placed += [_at(panel, index * width, y, width, row.height) for index, panel in enumerate(line)]
            y += row.height
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _at(panel: Object, x: int, y: int, width: int, height: int) -> Object:
    return {**panel, "gridPos": {"x": x, "y": y, "w": width, "h": height}}
