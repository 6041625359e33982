"""Rules for the imports of tests."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "sandbox/tests", "bench") for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module that the file names in an import, and every name that it imports from one."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(alias.name for alias in node.names)}
    return found


def test_no_file_imports_from_a_test_module() -> None:
    """A test module is read for its tests. Helpers have modules of their own, so that readers find them."""
    wrong = {
        str(path.relative_to(ROOT)): names
        for path in FILES
        if (names := [name for name in imported(path) if name.rpartition(".")[2].startswith("test_")])
    }
    assert wrong == {}
