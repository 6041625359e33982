"""Libraries that the gatekeeper must not import, because they slow down its start."""

import subprocess
import sys

import pytest

HEAVY = ["kubernetes_asyncio", "rich.console", "jsonschema", "yaml"]


@pytest.mark.parametrize("module", HEAVY)
def test_process_does_not_import_libraries_that_it_does_not_use_in_a_cluster(module: str) -> None:
    code = f"import sys, gatekeeper.__main__; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
