"""The dashboards' JSON: generated from the code, without gaps or overlaps, with descriptions, for any installation."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.__main__ import DIRECTORY, files
from dashboards.panels import DOCS
from dashboards.runbooks import RUNBOOKS
from tests.monitoring.conftest import Promtool
from tests.monitoring.installed import ALERTS, loaded, panels

Object = dict[str, Any]

NAMES = ("admission", "releases", "gates", "protections", "health")


@pytest.fixture(params=NAMES)
def dashboard(request: pytest.FixtureRequest) -> Object:
    return loaded()[f"altershield-{request.param}.json"]


def test_json_files_match_the_code() -> None:
    here = {path.name: path.read_text() for path in DIRECTORY.iterdir()}
    assert here == files(), "the dashboards' code changed: run `make dashboards`"


def test_links_in_dashboards_lead_to_the_json_files() -> None:
    folder = Path(__file__).parents[2] / "dashboards"
    assert {path.name: path.read_text() for path in folder.glob("*.json")} == files()


def test_dashboard_is_independent_of_the_installation(dashboard: Object) -> None:
    assert dashboard["uid"] == dashboard["title"].lower().replace(" / ", "-")
    assert "id" not in dashboard, "Grafana assigns the id"
    assert dashboard["schemaVersion"] == 38, "the schema of Grafana 10.0"
    assert "__inputs" not in dashboard, "a sidecar cannot answer prompts for inputs"
    source, *variables = dashboard["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert source["current"] == {}
    assert {"cluster", "namespace"} <= {variable["name"] for variable in variables}
    for where in (*variables, *panels(dashboard), *(t for panel in panels(dashboard) for t in panel["targets"])):
        assert where["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_dashboard_refreshes_and_links_to_the_other_dashboards(dashboard: Object) -> None:
    assert dashboard["time"]["to"] == "now"
    assert dashboard["refresh"] == "30s"
    (link,) = dashboard["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert all(set(link["tags"]) <= set(other["tags"]) for other in loaded().values())


def test_legends_name_only_labels_that_every_sum_of_the_query_keeps_or_gets(dashboard: Object) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            kept = [set(re.split(r",\s*", labels)) for labels in re.findall(r"\bby \(([^)]*)\)", target["expr"])]
            named = set(re.findall(r'"(\w+)", "[^"]+", "", ""\)', target["expr"]))
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert shown <= set.intersection(*kept or [{"pod"}]) | named, panel["title"]


def test_panels_have_descriptions_units_and_thresholds(dashboard: Object) -> None:
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboard):
        assert panel["description"].endswith("."), panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"], panel["title"]
        base, *steps = [step["value"] for step in defaults["thresholds"]["steps"]]
        assert base is None
        assert steps == sorted(steps)


def test_panels_fill_the_grid_without_overlaps(dashboard: Object) -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
        assert min(place["w"], place["h"]) >= 1
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, f"{panel['title']} lies over {cells[x, y]}"
                cells[x, y] = panel["title"]
    height = max(y for _, y in cells) + 1
    assert len(cells) == 24 * height, "there are gaps"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_used_variables_are_defined_and_defined_variables_are_used(dashboard: Object) -> None:
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    text = json.dumps(dashboard["panels"])
    assert {name for name in variables if f"${name}" in text or f"${{{name}}}" in text} == variables
    known = variables | {"__rate_interval", "__range", "{__data.fields."}
    used = {part.partition('"')[0] for part in text.split("$")[1:]}
    assert all(any(use.startswith((name, f"{{{name}}}")) for name in known) for use in used)


def test_every_query_selects_the_chosen_clusters(dashboard: Object) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            found = re.findall(r"\b(?:(?:altershield|apiserver|process)_\w+|ALERTS)\b(?:\{[^}]*\})?", target["expr"])
            assert found, panel["title"]
            for selector in found:
                assert 'cluster=~"$cluster"' in selector, f"{panel['title']}: {selector}"
            matched = re.findall(r"\bon \(([^)]*)\)", target["expr"])
            assert all(labels.startswith("cluster") for labels in matched), panel["title"]


def test_panels_link_to_the_runbooks_of_their_alerts() -> None:
    found: dict[str, set[str]] = {}
    for dashboard in loaded().values():
        for panel in panels(dashboard):
            for link in panel["links"]:
                found.setdefault(Path(link["url"]).stem, set()).add(panel["title"])
                assert link["title"] == f"Runbook: {Path(link['url']).stem}"
    assert found.keys() == ALERTS, "each alert has a panel that shows its cause"
    titles = [panel["title"] for dashboard in loaded().values() for panel in panels(dashboard)]
    assert set(RUNBOOKS) <= set(titles)


def test_releases_link_to_the_command_that_explains_them() -> None:
    tables = [panel for panel in panels(loaded()["altershield-releases.json"]) if panel["type"] == "table"]
    assert len(tables) == 2
    for panel in tables:
        (workload,) = [
            each
            for each in panel["fieldConfig"]["overrides"]
            if each["matcher"] == {"id": "byName", "options": "Workload"}
        ]
        ((link,),) = [each["value"] for each in workload["properties"] if each["id"] == "links"]
        columns = panel["transformations"][1]["options"]["renameByName"].values()
        assert set(re.findall(r"__data\.fields\.(\w+)", link["title"])) <= set(columns)
        command = re.sub(r"\$\{__data\.fields\.(\w+)\}", r"\1", link["title"])
        assert command == "altershield why Kind/Workload -n Namespace"
        page, _, anchor = link["url"].removeprefix(DOCS).partition("#")
        assert anchor.replace("-", " ", 1) in (DIRECTORY.parents[3] / "docs" / page).read_text()


def test_dashboards_are_distinct() -> None:
    for one, other in combinations(loaded().values(), 2):
        assert one["uid"] != other["uid"]
        assert one["title"] != other["title"]


COUNTED = [
    # an outage of an hour: an old pod, and a new pod whose first scrape already shows three releases
    ('altershield_ungated_releases_total{namespace="system", pod="old", reason="no-version"}', "9x60 stale"),
    ('altershield_ungated_releases_total{namespace="system", pod="new", reason="no-version"}', "_x121 3x10 5x20 stale"),
    ('altershield_ungated_releases_total{namespace="system", pod="idle", reason="no-version"}', "_x121 0x200"),
    # one object that each of three replicas could not decode in its first list
    *(
        (
            f'altershield_watch_skipped_total{{namespace="system", pod="{pod}", component="c", resource="pods"}}',
            "_x121 1x99",
        )
        for pod in ("a", "b", "c")
    ),
    # two first failures of one API server; seven old failures of another one, which one scrape did not reach
    ('apiserver_admission_webhook_fail_open_count{job="a", instance="1", name="mdeployment.kb.io"}', "_x121 2x200"),
    (
        'apiserver_admission_webhook_fail_open_count{job="a", instance="2", name="mdeployment.kb.io"}',
        "7x99 stale 7x200",
    ),
    ('up{job="a", instance="1"}', "1x300"),
    ('up{job="a", instance="2"}', "1x99 0 1x200"),
]


@pytest.mark.parametrize(
    ("title", "at", "value"),
    [
        ("Ungated releases", "121m", 3),
        ("Ungated releases", "179m", 5),
        ("Ungated releases", "220m", 0),
        ("Objects that could not be read", "121m", 1),
        ("Passed unanswered", "121m", 2),
        ("Passed unanswered", "160m", 2),
        ("Passed unanswered", "190m", 0),
    ],
)
def test_counts_from_before_the_first_scrape_are_counted_once(
    title: str, at: str, value: int, promtool: Promtool, tmp_path: Path
) -> None:
    (target,) = [
        target
        for dashboard in loaded().values()
        for panel in panels(dashboard)
        for target in panel["targets"]
        if panel["title"] == title
    ]
    expression = target["expr"].replace("$__range", "1h").replace("$namespace", "system").replace("$cluster", "")
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in COUNTED],
        "promql_expr_test": [
            {"expr": f"sum({expression})", "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
        ],
    }
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"tests": [test]}))
    promtool("test", "rules", tmp_path / "tests.yaml")
