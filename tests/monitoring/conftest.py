"""Fixtures for tests of alerts and dashboards with Prometheus and promtool."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tools import program, unless_helm

collect_ignore = unless_helm("test_chart.py")

Promtool = Callable[..., str]


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
