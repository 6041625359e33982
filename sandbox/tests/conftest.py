"""Options of the sandbox's tests. This folder is on the import path: tests import shared helpers from `support`."""

import contextlib
import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

# a slow test run on a busy machine is not a failure
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubernetes")
    with contextlib.suppress(ValueError):  # AlterShield's tests define the same options
        group.addoption(
            "--kubeconfig", default=None, help="Run the tests that need a cluster on the one of this kubeconfig."
        )
        group.addoption(
            "--simulate-nodes",
            action="store_true",
            help="With --kubeconfig: simulate nodes, and controllers if the cluster has none.",
        )


@pytest.fixture(scope="session")
def has_kubectl() -> None:
    if shutil.which("kubectl") is None:
        text = "kubectl is not on PATH; to install it: apt-get install kubectl (from Debian 13 on), or "
        text += "https://kubernetes.io/docs/tasks/tools"
        assert "CI" not in os.environ, f"in CI nothing is skipped: {text}"
        pytest.skip(text)
