"""Fixtures for tests that render the chart with the real Helm engine, or install it on the cluster of the end-to-end
tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.rendering import CHART, VALUES, Object, loaded, rendered
from tests.e2e.conftest import cluster as cluster
from tests.e2e.conftest import directory as directory
from tests.e2e.conftest import has_kubectl as has_kubectl
from tests.support.kubectl import Kubectl
from tests.support.tools import unless_helm

if TYPE_CHECKING:
    import helm_python

    from tests.chart.release import Release, Uninstall

collect_ignore_glob = unless_helm("test_*.py")


@pytest.fixture(scope="session")
def chart() -> "helm_python.Chart":
    import helm_python

    return helm_python.Chart.load(CHART)


@pytest.fixture(params=VALUES, ids=lambda path: path.name.removesuffix("-values.yaml"))
def values(request: pytest.FixtureRequest) -> Object:
    """Each of the chart's `ci/*-values.yaml`."""
    return loaded(request.param)


@pytest.fixture
def objects(chart: "helm_python.Chart", values: Object) -> list[Object]:
    """All objects of a release with `values`, including hooks."""
    return rendered(chart, values)


@pytest.fixture
def system(has_kubectl: None, cluster: Path) -> Kubectl:
    """kubectl as administrator in the system namespace."""
    return Kubectl(cluster, SYSTEM_NAMESPACE)


@pytest.fixture
def uninstall(capfd: pytest.CaptureFixture[str]) -> "Uninstall":
    from tests.chart.release import Uninstall

    return Uninstall(capfd)


@pytest.fixture
def release(cluster: Path) -> "Iterator[Release]":
    """A release that is not installed yet. It is uninstalled after the test."""
    from tests.chart.release import Release

    release = Release(cluster)
    yield release
    release.uninstall()
