"""Options of the sandbox's tests. This folder is on the import path: tests import their helpers as `support`."""

import contextlib
import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

# a machine that is busy with another test is no finding
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubernetes")
    with contextlib.suppress(ValueError):  # the product's tests have the same options
        group.addoption("--kubeconfig", default=None, help="Run the tests that need a Kubernetes on this cluster.")
        group.addoption(
            "--simulate-nodes",
            action="store_true",
            help="With --kubeconfig: the cluster has no nodes; simulate them (and controllers, if they are missing).",
        )


@pytest.fixture(scope="session")
def has_kubectl() -> None:
    if shutil.which("kubectl") is None:
        assert "CI" not in os.environ, "in CI nothing is skipped: install kubectl"
        pytest.skip("kubectl is not on PATH; install it to run these tests")
