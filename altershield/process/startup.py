"""The start of a process, and how an error ends it."""

import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import typer
import uvloop

from altershield.errors import AlterShieldError
from altershield.process import logs, options


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """The options of every process."""

    kubeconfig: options.Kubeconfig = None
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE
    log_level: options.LogLevel = options.LOG_LEVEL


def run(work: Callable[[], Coroutine[Any, Any, None]], log_level: str) -> None:
    """Configure the logs and run `work` until it ends."""
    logs.configure(log_level)
    uvloop.run(work())


def main(app: Callable[[], Any]) -> None:
    """Run a typer application. An AlterShieldError prints one sentence and sets the exit code, without a traceback."""
    try:
        app()
    except AlterShieldError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def single(command: Callable[..., None]) -> typer.Typer:
    """An application with one command and no sub-commands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app
