"""The texts of the mutants occur in the code, and the runner reports the mutants that survive. `make mutants` tries all
of them, which takes minutes."""

import dataclasses
import subprocess
import sys

import pytest

from tests.mutants import SOURCES
from tests.mutants.mutant import Source
from tests.mutants.run import ROOT, changed


def test_text_of_each_mutant_occurs_once_in_its_file() -> None:
    for source in SOURCES:
        text = (ROOT / source.file).read_text()
        for old, new, *_ in (*source.mutants, *source.equivalent):
            changed(source, text, old, new)
        assert [each for each in source.tests if not (ROOT / each).is_file()] == [], source.file


def test_there_are_enough_mutants() -> None:
    assert sum(len(source.mutants) for source in SOURCES) >= 256 + 200


@pytest.mark.parametrize(
    "file",
    [
        "altershield/workloads/meta.py",
        "gatekeeper/handlers/releases/rolled_back.py",
        "reconciler/batches/transitions.py",
    ],
)
def test_tests_kill_the_first_mutants_of_a_file(file: str) -> None:
    """A sample of one file per package."""
    source = next(each for each in SOURCES if each.file == file)
    assert _survivors(dataclasses.replace(source, mutants=source.mutants[:3])) == []


def test_mutant_that_no_test_kills_is_reported() -> None:
    """If survivors were not reported, the other results would mean nothing. Only the first mutant is in a function."""
    mutants = (("return next((condition", "return  next((condition"), ("class Condition(", "class  Condition("))
    found = _survivors(Source("altershield/api/meta.py", ("tests/unit/altershield/api/test_meta.py",), mutants))
    assert found == [f"altershield/api/meta.py: no test fails with {new!r} for {old!r}" for old, new in mutants]


def _survivors(source: Source) -> list[str]:
    """Run the mutants in a new process, without the threads and modules of this one."""
    script = f"from tests.mutants.run import *; print(*survivors({source!r}), sep='\\n', end='')"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
