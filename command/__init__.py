"""The `altershield` command, with one module or package per subcommand. Exit codes: docs/reference/commands.md."""

from command.app import main

__all__ = ["main"]
