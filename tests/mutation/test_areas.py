"""The files that are mutated, and their tests."""

from tests.mutation.areas import areas

AREAS = {area.folder: area for area in areas()}


def test_areas_are_the_pure_modules_of_the_import_contracts() -> None:
    assert {"altershield/budgets", "reconciler/releases", "gatekeeper/handlers"} <= set(AREAS)
    assert "reconciler/releases/decisions/decide.py" in AREAS["reconciler/releases"].files
    assert AREAS["reconciler/policies"].files == ("reconciler/policies/acceptance.py",)
    assert "altershield/policies/selection.py" in AREAS["altershield/policies"].files
    assert not any("kube" in folder for folder in AREAS)


def test_tests_of_an_area_are_those_of_its_subject_and_those_that_import_it() -> None:
    found = AREAS["altershield/budgets"].tests
    assert "tests/unit/altershield/budgets/test_decision.py" in found
    assert "tests/unit/reconciler/budgets/test_budget_reconciler.py" in found
    assert not any("notifications" in each for each in found)
    assert "tests/unit/reconciler/releases/test_rollback.py" in AREAS["reconciler/releases"].tests


def test_words_choose_files() -> None:
    (found,) = areas(["decisions/history", "findings/failure"])
    assert found.files == ("reconciler/releases/decisions/history.py", "reconciler/releases/findings/failure.py")
    assert "tests/unit/reconciler/releases/test_rollback.py" in found.tests
