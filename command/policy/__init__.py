"""`altershield policy check`: whether a DefensePolicy is accepted, and the steps of its releases."""

from command.policy.command import app

__all__ = ["app"]
