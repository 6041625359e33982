"""The tree of the unit tests is the tree of the product: a reader finds the tests of a module by its name."""

from collections.abc import Iterator
from pathlib import Path

from tests.support.imports import imported

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]
HELPERS = {"reconciler/releases/world", "reconciler/steps_model", "reconciler/gates_model"}
"""Folders that are no packages of the product: simulated clusters."""
EXCEPTIONS = {
    "reconciler/gates_model/": "a model of release gates, made of several packages",
    "reconciler/steps_model/": "a model of releases in steps, made of several packages",
    "command/policy/test_check.py": "it runs the command",
    "altershield/process/test_signals.py": "the program that it starts imports the module",
    "gatekeeper/handlers/releases/": "some tests reach the handlers by reviews that they send to the gatekeeper",
}
"""Tests that do not import from the package of their folder, with the reason."""


def test_each_folder_of_unit_tests_is_a_package_of_the_product() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("*.py")}
    assert {each.as_posix() for each in folders if not (ROOT / each / "__init__.py").is_file()} - {"."} == HELPERS


def test_each_unit_test_imports_from_the_package_of_its_folder() -> None:
    """Tests at the root are about several programs."""
    wrong = []
    for path in sorted(UNIT.glob("*/**/test_*.py")):
        file = path.relative_to(UNIT)
        package = ".".join(file.parent.parts) + "."
        if not any(f"{name}.".startswith(package) for name in reached(path)):
            wrong.append(file.as_posix())
    assert [file for file in wrong if not file.startswith(tuple(EXCEPTIONS))] == []
    assert [each for each in EXCEPTIONS if not any(file.startswith(each) for file in wrong)] == [], "no longer needed"


def reached(path: Path) -> set[str]:
    """The names that a file imports itself or through helpers of the tests."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        new = imported(waiting.pop()) - found
        found |= new
        waiting += [file for name in new if name.startswith("tests.") for file in helpers(name)]
    return found


def helpers(name: str) -> Iterator[Path]:
    """The file of the module with this name, or of the module with this member."""
    own = ROOT / name.replace(".", "/")
    for each in (own, own.parent):
        yield from (file for file in (each.with_suffix(".py"), each / "__init__.py") if file.is_file())
