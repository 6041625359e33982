"""The start of a process, and its end after an error."""

import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import typer
import uvloop

from altershield.process import logs, options
from kube_base.errors import ReportedError


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """The options of every process."""

    kubeconfig: options.Kubeconfig = None
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE
    log_level: options.LogLevel = options.LOG_LEVEL


def run(work: Callable[[], Coroutine[Any, Any, None]], log_level: str) -> None:
    """Configure the logs and run `work`."""
    logs.configure(log_level)
    uvloop.run(work())


def main(app: Callable[[], Any]) -> None:
    """Run a typer application. An ReportedError prints its message without a traceback and sets the exit code."""
    try:
        app()
    except ReportedError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def single(command: Callable[..., None]) -> typer.Typer:
    """A typer application with one command and no subcommands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app
