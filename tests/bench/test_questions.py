"""The harness of the benchmarks, and that every question can be asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.harness import asking
from bench.harness.answer import Answer, exceeded, quantile, quantiles, report
from bench.harness.wrk import Compared, Run, compared
from kube_base.errors import UsageError

question = pytest.mark.parametrize("name", asking.names())


@question
def test_docstring_of_a_question_says_what_is_asked_what_is_measured_and_how_to_read_it(name: str) -> None:
    asked, *more = asking.docstring(name).split("\n\n")
    assert asked.endswith("?"), "the first line is a question"
    assert [part.partition(":")[0] for part in more if part.startswith(("Measured:", "How to read it:"))] == [
        "Measured",
        "How to read it",
    ]


@question
def test_help_of_a_question_has_its_docstring_and_where_its_figures_go(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        asking.run([name, "--help"])

    said = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    assert asking.docstring(name).split()[0] in said
    assert "--output" in said


@question
def test_runs_of_a_question_in_make_bench_have_only_options_that_it_has(name: str) -> None:
    parameters = asking.command(name).__signature__.parameters  # type: ignore[attr-defined]
    options = {part.removeprefix("--").replace("-", "_") for run in asking.runs(name) for part in run if "--" in part}
    assert options <= set(parameters)


def test_without_arguments_the_questions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    asking.run([])

    said = capsys.readouterr().out
    assert [name for name in asking.names() if name not in said] == []


def test_a_question_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no question nothing"):
        asking.run(["nothing"])


def test_an_answer_is_written_with_the_options_and_the_machine(tmp_path: Path) -> None:
    output = tmp_path / "results" / "decisions.json"

    with pytest.raises(SystemExit) as ended:
        asking.run(["decisions", "--pods", "10", "--output", str(output)])

    written = json.loads(output.read_text())
    assert ended.value.code == 0
    assert written["options"] == {"pods": [10]}
    assert written["releases"][0]["pods"] == 10
    assert written["wrong"] == []
    assert "Python" in written["machine"]


def test_an_answer_with_errors_exits_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> Answer:
        return Answer({"found": 2}, wrong=exceeded("writes", 2, 1))

    module: Any = type("module", (), {"ask": staticmethod(ask)})
    monkeypatch.setattr(asking, "_module", lambda _name: module)

    with pytest.raises(SystemExit) as ended:
        asking.run(["rest", "--output", str(tmp_path / "rest.json")])

    assert ended.value.code == 1
    assert json.loads((tmp_path / "rest.json").read_text())["wrong"] == ["writes: 2 is more than 1"]


def test_all_asks_every_question_although_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def call(command: list[str]) -> int:
        asked.append(command[3:-2])
        return int("--budgets" in command)

    monkeypatch.setattr(asking.subprocess, "call", call)

    with pytest.raises(SystemExit, match="1"):
        asking.run(["all", "memory", "start"])

    assert asked == [["memory"], ["memory", "--budgets", "5000"], ["start"]]
    assert "failed: memory --budgets 5000" in capsys.readouterr().err


def test_report_prints_the_notes_and_the_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report("rest", {"kubeconfig": tmp_path}, Answer({}, notes=["a note"], wrong=["an error"]), tmp_path / "rest.json")

    said = capsys.readouterr().out
    assert "a note" in said
    assert "an error" in said
    assert json.loads((tmp_path / "rest.json").read_text())["options"] == {"kubeconfig": str(tmp_path)}


def test_a_bound_that_is_kept_has_no_message() -> None:
    assert exceeded("p99", 500, 500, " ms") == []


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1, 100)])
def test_quantile_is_a_value_that_the_share_does_not_exceed(share: float, expected: int) -> None:
    assert quantile(range(1, 101), share) == expected


def test_quantiles_of_nothing_are_zero() -> None:
    assert quantiles([]) == (0, 0, 0)


def test_a_server_is_compared_with_the_other_in_the_same_round() -> None:
    slow, fast = Run(100, 1, 2, 10), Run(200, 1, 1, 5)
    rounds = [[slow, fast], [Run(10, 1, 20, 10), Run(20, 1, 10, 5)], [slow, fast]]

    assert compared(rounds, 1, 0) == Compared(rate=200, share=2, p99=1, times=0.5, cpu=5)
