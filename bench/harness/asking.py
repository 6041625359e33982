"""Lists the questions, asks one or all of them, and reports the answers.

A question is a module of `bench.questions`. Its docstring says what is asked (the first line), what is measured and how
to read it. Its coroutine `ask` returns an `Answer`; the parameters of `ask` are the options of the command. `RUNS`, if
there is one, has the arguments of each run that `python -m bench all` makes; by default it is one without arguments.
"""

import ast
import asyncio
import functools
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from bench.harness.answer import Answer, report
from kube_base.errors import UsageError

QUESTIONS = Path(__file__).parents[1] / "questions"
RESULTS = Path(__file__).parents[1] / "results"
ALL = "all"

Ask = Callable[..., Awaitable[Answer]]


def names() -> list[str]:
    """The names of the questions, as the command takes them."""
    return sorted(path.stem.replace("_", "-") for path in QUESTIONS.glob("*.py"))


def docstring(name: str) -> str:
    """What a question asks and measures. Its module is not imported."""
    return ast.get_docstring(ast.parse(_path(name).read_text())) or ""


def runs(name: str) -> Sequence[tuple[str, ...]]:
    """The arguments of each run of a question in `all`."""
    return getattr(_module(name), "RUNS", ((),))


def run(arguments: Sequence[str]) -> None:
    """`python -m bench` with these arguments. Exits with 1 if an answer has errors. UsageError: there is no such
    question."""
    match list(arguments):
        case [] | ["--help"]:
            _list()
        case [first, *chosen] if first == ALL:
            _ask_all(chosen or names())
        case [name, *options]:
            app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            app.command(help=_help(name))(command(name))
            app(options, prog_name=f"python -m bench {name}")


def command(name: str) -> Callable[..., None]:
    """The command of a question: the parameters of its `ask`, and `--output`."""
    ask: Ask = _module(name).ask
    output = Annotated[Path, typer.Option(help="The JSON file for the figures.")]
    parameters = [
        *inspect.signature(ask, eval_str=True).parameters.values(),
        inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=_results(name), annotation=output),
    ]

    @functools.wraps(ask)
    def asking(*, output: Path, **options: Any) -> None:
        answer = uvloop.run(_awaited(ask(**options)))
        report(name, options, answer, output)
        if answer.wrong:
            raise typer.Exit(1)

    asking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return asking


def _help(name: str) -> str:
    """The docstring, for any width of the terminal: one line for each paragraph, and for each item of a list."""
    lines = re.sub(r"(?<!\n)\n(?![\n-]) *", " ", docstring(name))
    return lines.replace("\n\n- ", "\n\n\b\n- ")


async def _awaited(answer: Awaitable[Answer]) -> Answer:
    return await asyncio.ensure_future(answer)


def _list() -> None:
    table = Table("question", "", box=None, padding=(0, 2, 0, 0))
    for name in names():
        table.add_row(name, docstring(name).partition("\n\n")[0].replace("\n", " "))
    print("usage: python -m bench QUESTION [options] | python -m bench all [QUESTION …]\n")
    Console(soft_wrap=True).print(table)


def _ask_all(chosen: Sequence[str]) -> None:
    """Ask questions in processes of their own, one after the other."""
    failed = []
    for name in chosen:
        for arguments in runs(name):
            title = " ".join((name, *arguments))
            print(f"\n{title}", flush=True)
            asked = [sys.executable, "-m", "bench", name, *arguments, "--output", str(_results(title))]
            if subprocess.call(asked):
                failed.append(title)
    if failed:
        print("failed:", ", ".join(failed), file=sys.stderr)
        raise SystemExit(1)


def _results(title: str) -> Path:
    return RESULTS / f"{title.replace(' --', '-').replace(' ', '-')}.json"


def _path(name: str) -> Path:
    if name not in names():
        raise UsageError(f"there is no question {name}; `python -m bench` lists the questions")
    return QUESTIONS / f"{name.replace('-', '_')}.py"


def _module(name: str) -> Any:
    return importlib.import_module(f"bench.questions.{_path(name).stem}")
