"""Libraries that a process must not import in a cluster, because they slow down its start."""

import subprocess
import sys

import pytest

HEAVY = {
    "gatekeeper": {"kubernetes_asyncio", "rich.console", "jsonschema", "yaml"},
    "reconciler": {"kubernetes_asyncio", "rich.console", "jsonschema"},
}


@pytest.mark.parametrize("package", HEAVY)
def test_process_does_not_import_libraries_that_it_does_not_use_in_a_cluster(package: str) -> None:
    code = f"import sys, {package}.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY[package].isdisjoint(done.stdout.split())
