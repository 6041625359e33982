"""Libraries that a process must not import, because they slow down its start."""

import subprocess
import sys

import pytest

from command.app import PANELS

HEAVY = {
    "gatekeeper.process": {"kubernetes_asyncio", "rich.console", "jsonschema", "yaml", "cronsim", "dateutil"},
    "reconciler.__main__": {"kubernetes_asyncio", "rich.console", "jsonschema", "cronsim", "dateutil"},
}


@pytest.mark.parametrize("module", HEAVY)
def test_process_does_not_import_libraries_that_it_does_not_use_in_a_cluster(module: str) -> None:
    assert HEAVY[module].isdisjoint(imported_by(module))


def test_gatekeeper_imports_aiohttp_only_without_the_authorities_of_the_system() -> None:
    """Reading more than a hundred certificates takes a quarter of its start."""
    assert "aiohttp" not in imported_by("gatekeeper.__main__")
    code = """
import gc, os, ssl
from altershield.process.quick_imports import quick_imports
read = []
load = ssl.SSLContext.load_default_certs
ssl.SSLContext.load_default_certs = lambda self, *more: (load(self, *more), read.extend(self.get_ca_certs()))
before = dict(os.environ)
with quick_imports():
    import gatekeeper.process
assert (dict(os.environ), read, gc.isenabled()) == (before, [], True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sandbox_does_not_import_the_grammars_of_jsonschema_formats() -> None:
    """kubernetes_asyncio imports kubernetes_validate, and with it jsonschema, if they are installed. jsonschema imports
    rfc3987_syntax if it is installed, which takes more than a second. `make clean` deletes such an environment."""
    assert {"lark", "rfc3987_syntax"}.isdisjoint(imported_by("kube_sandbox.__main__"))


def test_each_subcommand_can_be_imported_alone() -> None:
    modules = sorted({f"command.{each.module}" for commands in PANELS.values() for each in commands.values()})
    forgetting = "[sys.modules.pop(each) for each in list(sys.modules) if each.startswith('altershield')]"
    code = f"import importlib, sys\nfor name in {modules}:\n    {forgetting}\n    importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_subcommand_does_not_import_the_others() -> None:
    others = {"command.demo", "command.notify", "aiohttp.web", "cryptography.x509"}
    assert others.isdisjoint(imported_by("command.app", "command.app.command_line(['status'])"))


def imported_by(module: str, statement: str = "") -> set[str]:
    """The modules that a new process has after it imported this one and ran the statement."""
    code = f"import sys, {module}; {statement or 'pass'}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
