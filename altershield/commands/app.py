"""The command line: its subcommands, its names and its exit after errors."""

import asyncio
import logging
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from altershield.commands import (
    breaker,
    budgets,
    check,
    demo,
    dev,
    history,
    notify,
    protection,
    report,
    requests,
    sandbox,
    status,
    uninstall,
)
from altershield.errors import AlterShieldError

PLUGIN = "kubectl-altershield"
"""The name of the program that kubectl runs for `kubectl altershield`."""

app = typer.Typer(
    help="A release gate for Kubernetes: it verifies every release, denies the next one after a failure, and rolls "
    "back a release whose pods do not come up.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo.demo)
app.command()(sandbox.sandbox)
app.command()(dev.dev)
app.command()(status.status)
app.command()(requests.why)
app.command()(status.wait)
app.command()(history.history)
for each in (
    requests.approve,
    requests.verdict,
    requests.resume,
    requests.repair,
    requests.rollback,
    requests.retry,
):
    app.command()(each)
app.command()(protection.protect)
app.command()(protection.unprotect)
app.command()(protection.protected)
app.command()(budgets.budgets)
app.command()(report.report)
app.command()(check.check)
app.command()(uninstall.uninstall)
app.add_typer(breaker.app, name="breaker")
app.add_typer(notify.app, name="notify")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"altershield {version('altershield')}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point. An AlterShieldError prints one sentence without a traceback and sets the exit code."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()])
    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)  # it raises everything that it logs
    try:
        app(args=arguments(sys.argv[1:]), prog_name=called_as(sys.argv[0]))
    except AlterShieldError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except asyncio.CancelledError:
        sys.exit(143)  # after SIGTERM and the cleanup


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
