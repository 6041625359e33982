"""Rules for the imports of tests."""

from pathlib import Path

from tests.support.imports import imported

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "sandbox/tests", "bench") for path in (ROOT / folder).rglob("*.py"))


def test_no_file_imports_from_a_test_module() -> None:
    """A test module is read for its tests. Helpers have modules of their own, so that readers find them."""
    wrong = {
        str(path.relative_to(ROOT)): names
        for path in FILES
        if (names := [name for name in imported(path) if ".test_" in f".{name}"])
    }
    assert wrong == {}
