"""Alerts and dashboards, judged by the real Prometheus and promtool."""

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
    """Where it is; the test is skipped where it is not, but never in CI."""
    found = shutil.which(name)
    if found is None:
        assert "CI" not in os.environ, f"in CI nothing is skipped: install {name}"
        pytest.skip(f"{name} is not on PATH; install Debian's package `prometheus` to run these tests")
    return found


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """`promtool ARGUMENTS`: what it says; a complaint is an assertion."""
    path = program("promtool")

    def run(*arguments: str | Path, stdin: str | None = None) -> str:
        done = subprocess.run([path, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"promtool {arguments}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return run
