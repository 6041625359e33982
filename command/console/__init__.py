"""`altershield console`: the same answers in a browser."""

from command.console.command import console

__all__ = ["console"]
