"""Options of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("altershield")
    group.addoption("--kubeconfig", default=None, help="Run the end-to-end tests on this cluster.")
    group.addoption(
        "--simulate-nodes",
        action="store_true",
        help="With --kubeconfig: the cluster has no nodes; simulate them (and the controllers that are missing).",
    )
