"""Programs and packages that some tests need, and how to install them. Where one is missing, these tests are skipped.
With the variable CI, they fail."""

import importlib.util
import os
import shutil

import pytest

_INSTALL = {
    "kubectl": "apt-get install kubectl (from Debian 13 on), or https://kubernetes.io/docs/tasks/tools",
    "prometheus": "apt-get install prometheus",
    "promtool": "apt-get install prometheus (from Debian 13 on: promtool)",
}

HAS_HELM = importlib.util.find_spec("helm_python") is not None
"""Whether the Helm engine is installed. Modules that import it are not collected without it."""


def program(name: str) -> str:
    """The path of a program on PATH. Skips the test without it."""
    found = shutil.which(name)
    if found is None:
        text = f"{name} is not on PATH; to install it: {_INSTALL[name]}"
        assert "CI" not in os.environ, f"in CI nothing is skipped: {text}"
        pytest.skip(text)
    return found


def unless_helm(*patterns: str) -> list[str]:
    """The patterns of modules that are not collected because the Helm engine is missing."""
    if HAS_HELM:
        return []
    assert "CI" not in os.environ, "in CI nothing is skipped: helm-python-sdk is missing"
    return list(patterns)
