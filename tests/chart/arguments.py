"""The arguments that the chart gives to processes."""

from typing import cast

import typer
from typer.core import TyperGroup


def parsed(process: typer.Typer, arguments: list[str]) -> typer.Context:
    """Parse arguments without running the command. Raises an exception if an argument is unknown."""
    command = typer.main.get_command(process)
    if isinstance(command, TyperGroup):
        command = command.commands[arguments.pop(0)]
    return cast(typer.Context, command.make_context("process", arguments))
