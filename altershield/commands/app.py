"""The command line: its sub-commands, and how errors end it."""

import asyncio
import sys

import typer

from altershield.commands import check, demo, dev, sandbox, status, uninstall
from altershield.errors import AlterShieldError

app = typer.Typer(
    help="A release gate for Kubernetes: verifies every release, stops the next one after a failure, undoes what "
    "never came up.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(sandbox.sandbox)
app.command()(dev.dev)
app.command()(status.status)
app.command()(check.check)
app.command()(uninstall.uninstall)


def main() -> None:
    """Entry point. An error of ours is one sentence on stderr and its exit code, never a traceback."""
    try:
        app()
    except AlterShieldError as error:
        print(f"altershield: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except asyncio.CancelledError:
        sys.exit(143)  # SIGTERM, everything put back
