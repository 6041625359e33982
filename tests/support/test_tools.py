import pytest

from tests.support import skipped, tools


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools, "HAS_HELM", False)


def test_missing_program_skips_the_test_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="promtool is not on PATH; to install it: apt-get install"):
        tools.program("promtool")
    assert tools.unless_helm("test_chart.py") == ["test_chart.py"]


def test_missing_program_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="in CI nothing is skipped: kubectl is not on PATH"):
        tools.program("kubectl")
    with pytest.raises(AssertionError, match="in CI nothing is skipped: helm-python-sdk"):
        tools.unless_helm("test_chart.py")


def test_each_reason_has_one_line() -> None:
    reasons = ["Skipped: no kubectl", "Skipped: no promtool", "Skipped: no kubectl"]
    assert skipped.lines(reasons) == ["2 skipped: no kubectl", "1 skipped: no promtool"]
