"""The command line: its subcommands, its names and its exit after errors."""

import asyncio
import errno
import importlib
import logging
import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from kube_base.errors import ReportedError

PLUGIN = "kubectl-altershield"
"""The name of the program that kubectl runs for `kubectl altershield`."""

_MODULES = {
    "demo": "demo",
    "sandbox": "sandbox",
    "dev": "dev",
    "status": "status",
    "why": "requests",
    "wait": "status",
    "history": "history",
    "approve": "requests",
    "verdict": "requests",
    "resume": "requests",
    "repair": "requests",
    "rollback": "requests",
    "retry": "requests",
    "promote": "requests",
    "hold": "requests",
    "gates": "gates",
    "calendar": "gates",
    "freeze": "gates",
    "unfreeze": "gates",
    "override": "gates",
    "protect": "protection",
    "unprotect": "protection",
    "protected": "protection",
    "budgets": "budgets",
    "report": "report",
    "check": "check",
    "uninstall": "uninstall",
}
"""The subcommands, in the order of the help, and the module of this package that has a function of the same name."""

_GROUPS = ("policy", "breaker", "notify")
"""The subcommands that have subcommands themselves. Their modules have an `app`."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"altershield {version('altershield')}")
        raise typer.Exit


def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """The command line. If `words` begin with the name of a subcommand, it has this one only: the modules of all
    subcommands take longer to import than most commands to run."""
    made = typer.Typer(
        help="A release gate for Kubernetes: it verifies every release, denies the next one after a failure, and rolls "
        "back a release whose pods do not come up.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_common)
    every = (*_MODULES, *_GROUPS)
    for name in (words[0],) if words and words[0] in every else every:
        module = importlib.import_module(f"command.{_MODULES.get(name, name)}")
        if name in _GROUPS:
            made.add_typer(module.app, name=name)
        else:
            made.command()(getattr(module, name))
    return made


def main() -> None:
    """The entry point. An ReportedError prints one sentence without a traceback and sets the exit code."""
    _open_standard_files()
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()])
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)  # it raises everything that it logs
    try:
        typed = arguments(sys.argv[1:])
        try:
            command_line(typed)(args=typed, prog_name=called_as(sys.argv[0]))
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE):
            raise
        if error.errno == errno.ENOSPC:
            print(f"error: cannot write the output or a temporary file: {error.strerror}", file=sys.stderr)
        _discard_output()
        sys.exit(1)
    except ReportedError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except asyncio.CancelledError:
        sys.exit(143)  # after SIGTERM and the cleanup


def _open_standard_files() -> None:
    """Open stdin, stdout and stderr if they are closed (`<&-`): uvloop aborts if another file gets their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def _discard_output() -> None:
    """Write what is left in the buffer of stdout to nowhere, so that the interpreter can flush it at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)


def called_as(program: str) -> str:
    """The command as the user typed it."""
    return "kubectl altershield" if Path(program).name == PLUGIN else "altershield"


def arguments(typed: Sequence[str]) -> list[str]:
    """The arguments with `-o=json` changed to `-ojson`. kubectl accepts both, typer only the second."""
    return [re.sub(r"^(-[a-zA-Z])=", r"\1", argument) for argument in typed]


class _Warnings(logging.Handler):
    """Prints warnings of the log as one sentence each, in the format of kubectl."""

    def emit(self, record: logging.LogRecord) -> None:
        cause = getattr(record, "cause", "")
        print(f"Warning: {record.getMessage()}{f': {cause}' if cause else ''}", file=sys.stderr)
