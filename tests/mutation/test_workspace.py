"""The mutants of an area, and a sample of them that the tests notice."""

import subprocess
import sys

import pytest

from tests.mutation.areas import ROOT

FUNCTIONS = (
    ("x_f__mutmut_orig", 'yield "key", f"{count} pods"', 'raise ValueError("no such pod")'),
    ("x_f__mutmut_1", 'yield "key", f"{count} pods"', 'raise ValueError("XXno such podXX")'),
    ("x_f__mutmut_2", 'yield "KEY", f"{count} pods"', 'raise ValueError("no such pod")'),
    ("x_f__mutmut_3", 'yield "key", f"{count} pods"', "raise ValueError(None)"),
)


def test_mutants_of_the_wording_of_sentences_are_left_out() -> None:
    # these imports take a second, which each worker would need to collect the tests
    from mutmut.mutation.data import LineSpan
    from mutmut.mutation.file_mutation import MutatedFile

    from tests.mutation.workspace import changes_of_code

    code = "\n".join(f"def {name}(count):\n  {first}\n  {second}" for name, first, second in FUNCTIONS)
    names = [name for name, *_ in FUNCTIONS]
    spans = {name: LineSpan(3 * index + 1, 3 * index + 3) for index, name in enumerate(names)}
    assert list(changes_of_code(MutatedFile(code, names[1:], spans, {}))) == names[2:]


@pytest.mark.timeout(2400)  # as long as the whole suite may take: it uses 15 seconds of CPU, on a busy machine too
def test_tests_notice_the_mutants_of_one_subject() -> None:
    """A sample that is the same each time, so the result changes only with the code and its tests. One mutant of twenty
    may stay unnoticed, because some mutants behave like the code. mutmut itself checks that the tests pass without a
    mutant, and fail with a function that raises."""
    command = [sys.executable, "-m", "tests.mutation", "reconciler/policies", "--processes=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    print(done.stdout)
