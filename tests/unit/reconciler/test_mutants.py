"""The fast tests notice small mistakes in what decides and in the adapters: see `mutants/known.py`."""

import subprocess
import sys

import pytest

from .mutants.known import MUTANTS
from .mutants.run import ROOT


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", sorted(MUTANTS, key=lambda file: -len(MUTANTS[file][1])))
def test_every_mistake_is_noticed(file: str) -> None:
    command = [sys.executable, "-m", "tests.unit.reconciler.mutants.run", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr[-2000:]) == (0, "", "")


def test_there_are_enough_of_them() -> None:
    assert sum(len(mutants) for _, mutants in MUTANTS.values()) >= 60


def test_what_nothing_notices_is_told() -> None:
    """Else all of this would prove nothing."""
    script = (
        "from tests.unit.reconciler.mutants import run\n"
        "file = 'reconciler/releases/kept.py'\n"
        "run.MUTANTS[file] = ['tests/unit/reconciler/test_health.py'], [('found = hashlib', 'found  = hashlib')]\n"
        "run.main(file)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "reconciler/releases/kept.py: nothing notices 'found  = hashlib' for 'found = hashlib'"
