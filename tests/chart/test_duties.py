"""The value `reconciler.separationOfDuties`: off by default, and understood by the reconciler."""

import helm_python
import pytest

import reconciler.__main__
from tests.chart.arguments import parsed
from tests.chart.rendering import Object, containers, rendered, the


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({}, False),
        ({"reconciler": {"separationOfDuties": False}}, False),
        ({"reconciler": {"separationOfDuties": True}}, True),
    ],
)
def test_separation_of_duties_is_an_option_of_the_reconciler(
    chart: helm_python.Chart, values: Object, wanted: bool
) -> None:
    arguments = containers(the(rendered(chart, values), "Deployment"))["reconciler"]["args"]
    assert parsed(reconciler.__main__.app, list(arguments)).params["separation_of_duties"] is wanted
