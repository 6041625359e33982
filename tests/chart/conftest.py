"""The chart, rendered by the real Helm engine, and installed on the Kubernetes that the end-to-end tests run on."""

import helm_python
import pytest
import yaml

from tests.chart.rendering import CHART, VALUES, Object, rendered
from tests.e2e.conftest import cluster as cluster
from tests.e2e.conftest import directory as directory
from tests.e2e.conftest import has_kubectl as has_kubectl


@pytest.fixture(scope="session")
def chart() -> helm_python.Chart:
    return helm_python.Chart.load(CHART)


@pytest.fixture(params=VALUES, ids=lambda path: path.name.removesuffix("-values.yaml"))
def values(request: pytest.FixtureRequest) -> Object:
    """Each of the chart's `ci/*-values.yaml`."""
    loaded: Object = yaml.safe_load(request.param.read_text()) or {}
    return loaded


@pytest.fixture
def objects(chart: helm_python.Chart, values: Object) -> list[Object]:
    """All objects of a release with `values`, hooks too."""
    return rendered(chart, values)
