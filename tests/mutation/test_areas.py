"""The files that are mutated, and their tests."""

import pytest

from tests.mutation.areas import Area, areas


@pytest.fixture(scope="module")
def by_folder() -> dict[str, Area]:
    """Read in one worker, not by each one while it collects the tests: the imports of all test files are parsed."""
    return {area.folder: area for area in areas()}


def test_areas_are_the_pure_modules_of_the_import_contracts(by_folder: dict[str, Area]) -> None:
    assert {"altershield/budgets", "reconciler/releases", "gatekeeper/handlers"} <= set(by_folder)
    assert "reconciler/releases/decisions/decide.py" in by_folder["reconciler/releases"].files
    assert by_folder["reconciler/policies"].files == ("reconciler/policies/acceptance.py",)
    assert "altershield/policies/selection.py" in by_folder["altershield/policies"].files
    assert not any("kube" in folder for folder in by_folder)


def test_tests_of_an_area_are_those_of_its_subject_and_those_that_import_it(by_folder: dict[str, Area]) -> None:
    found = by_folder["altershield/budgets"].tests
    assert "tests/unit/altershield/budgets/test_decision.py" in found
    assert "tests/unit/reconciler/budgets/test_budget_reconciler.py" in found
    assert not any("notifications" in each for each in found)
    releases = by_folder["reconciler/releases"].tests
    assert {"releases/test_rollback.py", "steps_model/test_promotion.py"} <= {
        each.removeprefix("tests/unit/reconciler/") for each in releases
    }


def test_words_choose_files() -> None:
    (found,) = areas(["decisions/history", "findings/failure"])
    assert found.files == ("reconciler/releases/decisions/history.py", "reconciler/releases/findings/failure.py")
    assert "tests/unit/reconciler/releases/test_rollback.py" in found.tests
