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
from typing import Annotated, Any, NamedTuple

import typer
from typer._completion_classes import completion_init
from typer.core import TyperGroup

from command.shell import setup
from kube_base.errors import ReportedError

PLUGIN = "kubectl-altershield"
"""The name of the program that kubectl runs for `kubectl altershield`."""


class _Command(NamedTuple):
    module: str
    """The module of this package that has a function of the name of the command, or an `app` if it has subcommands."""
    short: str
    """What it does, in the list of commands."""
    subcommands: bool = False


PANELS = {
    "Look": {
        "status": _Command("status", "Show releases, those that need somebody first"),
        "why": _Command("requests", "Explain the state of a release, or who protects a pod"),
        "wait": _Command("status", "Wait for the end of a release, or of one of its steps"),
        "history": _Command("history", "Show who released which version of a workload, and how it ended"),
        "gates": _Command("gates", "Show the gates, and which of them are closed"),
        "calendar": _Command("gates", "Show the times of release windows and freezes"),
        "budgets": _Command("budgets", "Show how many pods may be disrupted now"),
        "protected": _Command("protection", "Show the objects that are protected from deletion"),
        "console": _Command("console", "Show releases in a browser"),
        "report": _Command("report", "Report how the releases of the last week ended"),
    },
    "Decide": {
        "approve": _Command("requests", "Accept a release that failed by a false alarm"),
        "retry": _Command("requests", "Verify the failed pods of a release again"),
        "repair": _Command("requests", "Let the next release of a suspended workload pass, once"),
        "resume": _Command("requests", "Admit further releases of a suspended workload"),
        "rollback": _Command("requests", "Release an older version again"),
        "promote": _Command("requests", "Let the next step of a release begin now"),
        "hold": _Command("requests", "Let no further step of a release begin"),
        "verdict": _Command("requests", "Give a verdict on a pod"),
        "override": _Command("gates", "Let one release pass closed gates, in an emergency"),
    },
    "Protect": {
        "freeze": _Command("gates", "Let no release begin for a time"),
        "unfreeze": _Command("gates", "End a freeze now"),
        "protect": _Command("protection", "Protect objects from deletion"),
        "unprotect": _Command("protection", "Take this protection off"),
        "breaker": _Command(
            "breaker", "Show, open and reset the breakers that stop deletions of pods", subcommands=True
        ),
        "policy": _Command("policy", "Check policies before they are applied", subcommands=True),
    },
    "Operate": {
        "check": _Command("check", "Check with a release of its own that the installation works"),
        "notify": _Command("notify", "Test the receivers of notifications", subcommands=True),
        "dev": _Command("dev", "Run AlterShield on this machine for a cluster"),
        "demo": _Command("demo", "Play a release story and check its outcome"),
        "sandbox": _Command("sandbox", "Serve a Kubernetes API with simulated nodes"),
        "uninstall": _Command("uninstall", "Delete AlterShield from the cluster"),
    },
}
"""The subcommands, as the help groups them."""


class _Group(TyperGroup):
    """The command, whose help groups the subcommands. typer groups them only in boxes drawn by rich."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, setup.named(args))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for title, commands in PANELS.items():
            rows = [(name.ljust(width), each.short) for name, each in commands.items() if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"altershield {version('altershield')}")
        raise typer.Exit


def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    _install: setup.Install = None,
    _show: setup.Show = None,
) -> None:
    pass


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """The command line. If `words` begin with the name of a subcommand, it has this one only: the modules of all
    subcommands take longer to import than most commands to run."""
    completion_init()
    made = typer.Typer(
        cls=_Group,
        add_completion=False,  # those options are in command.shell.setup
        help="A release gate for Kubernetes: it verifies every release, denies the next one after a failure, and rolls "
        "back a release whose pods do not come up.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_common)
    every = {name: each for commands in PANELS.values() for name, each in commands.items()}
    for name in (words[0],) if words and words[0] in every else every:
        module = importlib.import_module(f"command.{every[name].module}")
        if every[name].subcommands:
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
