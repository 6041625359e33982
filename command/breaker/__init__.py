"""The breakers of PodDeletionFlowControls: `altershield breaker status`, `open` and `reset`."""

from command.breaker.command import EXIT_OPEN, app

__all__ = ["EXIT_OPEN", "app"]
