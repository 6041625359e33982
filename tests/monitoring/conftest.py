"""Fixtures for tests of alerts and dashboards with Prometheus and promtool."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart.conftest import HAS_HELM

collect_ignore = [] if HAS_HELM else ["test_chart.py"]

Promtool = Callable[..., str]


def program(name: str) -> str:
    """The path of a program. If it is not on PATH, the test is skipped, but in CI it fails."""
    found = shutil.which(name)
    if found is None:
        assert "CI" not in os.environ, f"CI must not skip tests: install {name}"
        pytest.skip(f"{name} is not on PATH; install Debian's package `prometheus` to run these tests")
    return found


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs promtool and returns its output. AssertionError if it fails."""
    path = program("promtool")

    def run(*arguments: str | Path, stdin: str | None = None) -> str:
        done = subprocess.run(
            [path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"promtool {arguments}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run
