"""The `altershield` command. One file per sub-command; exit codes are in the README."""

from altershield.commands.app import main

__all__ = ["main"]
