"""The pictures of the dashboards: every panel is drawn from query results."""

import math
import xml.etree.ElementTree as ET

import pytest

from dashboards.__main__ import boards
from dashboards.panels import Object
from dashboards.pictures import picture
from dashboards.series import Series, runs
from dashboards.shapes import formatted
from tests.monitoring.pictures import DIRECTORY

BOARDS = {board["uid"]: board for board in boards()}


class Answers:
    """Returns the same ten seconds of data for every query."""

    start, end = 1000.0, 1010.0

    def __init__(self, *series: Series) -> None:
        self._series = list(series)

    def between(self, query: str) -> list[Series]:
        return self._series

    def now(self, query: str) -> list[Series]:
        return self._series


LABELS = {"le": "0.1", "pod": "altershield-0", "webhook": "vdeployment.kb.io"}
ONES = Series(LABELS, [(1000.0 + second, math.nan if second == 4 else 1.0) for second in range(10)])


def texts(content: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(content).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314  (ours)


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_every_panel_is_drawn_with_its_title(board: Object) -> None:
    shown = texts(picture(board, Answers(ONES)))
    for panel in board["panels"]:
        assert panel["title"] in shown, "the title is cut or missing"
    assert "No data" not in shown


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_panel_without_series_shows_no_data(board: Object) -> None:
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert texts(picture(board, Answers())).count("No data") == len(panels)


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_picture_of_the_docs_shows_the_panels_of_the_dashboard(board: Object) -> None:
    shown = texts((DIRECTORY / f"dashboard-{board['uid'].removeprefix('altershield-')}.svg").read_text())
    for panel in board["panels"]:
        assert panel["title"] in shown, "the title is cut or missing"
    assert "No data" not in shown, "tests.monitoring.live must produce data for each panel"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (math.nan, "s", "–"),
        (0.000481, "s", "481 µs"),
        (0.25, "s", "250 ms"),
        (0.0, "s", "0 s"),
        (90.0, "s", "1.5 min"),
        (0.999, "percentunit", "99.9%"),
        (2.5, "reqps", "2.5 req/s"),
        (0.0, "dateTimeAsIso", "00:00:00"),
        (3.0, "none", "3"),
        (0.0, "bytes", "0 B"),
        (96.5 * 1024**2, "bytes", "96.5 MiB"),
    ],
)
def test_values_are_formatted_with_grafana_units(value: float, unit: str, text: str) -> None:
    assert formatted(value, unit) == text


def test_runs_split_at_gaps_and_at_value_changes() -> None:
    samples = [(0.0, 1.0), (1.0, 1.0), (2.0, 0.0), (5.0, 0.0)]
    assert [(part[0], part[-1]) for part in runs(samples)] == [
        ((0.0, 1.0), (2.0, 0.0)),
        ((2.0, 0.0), (2.0, 0.0)),
        ((5.0, 0.0), (5.0, 0.0)),
    ]
