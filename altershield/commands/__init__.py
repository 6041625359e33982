"""The `altershield` command. One file per sub-command; exit codes are in docs/reference/commands.md."""

from altershield.commands.app import main

__all__ = ["main"]
