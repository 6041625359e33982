"""`altershield demo`: plays a release story on a Kubernetes API and checks every step of it."""

from command.demo.command import demo

__all__ = ["demo"]
